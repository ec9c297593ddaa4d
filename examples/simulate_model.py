"""Simulate a model: a free fall, and a motion under a controller; validate one model against another."""

import numpy as np
from arm import ARM, TRUTH

import steelyard as sy

fall = sy.simulate(TRUTH, duration=0.5, q0=[0.2, 0.1, -0.3])
print(fall)

t = np.arange(0.0, 2.0, 0.001)
q = 0.3 * np.sin(np.pi * t)[:, None] * [1.0, 0.5, -0.5]
dq, ddq = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
run = sy.simulate(TRUTH, sy.ComputedTorque.for_model(TRUTH, bandwidth_rad_s=40.0), reference=(q, dq, ddq), duration=2.0)
print(run, "largest position error:", f"{np.abs(run.q[:-1] - q).max():.2e} rad")

log = run.log(sensors=sy.Sensors(torque_noise=0.2))  # N m
print(log)

theta = TRUTH.theta.copy()
theta[0:10] *= 1.1  # 10 % more mass in link 1
print(sy.predict(sy.Model(ARM, TRUTH.terms, theta), log))
