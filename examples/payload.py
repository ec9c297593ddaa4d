"""Identify what a robot carries, from a log without and one with it, and write it for a controller."""

import numpy as np
from arm import ARM, TRUTH, record

import steelyard as sy

# A body of 2 kg at the last link: mass, first moments, inertia about the link's origin.
mass, centre = 2.0, np.array([0.10, 0.02, 0.05])
inertia = np.diag([0.004, 0.006, 0.005]) + mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
theta = TRUTH.theta.copy()
theta[20:30] += [mass, *(mass * centre), *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]
carrying = sy.Model(ARM, TRUTH.terms, theta)

result = sy.identify_payload(ARM, record(2, carrying), without=record(1))
print(result)
payload = result.loads[0]
print(payload.to_pandas().to_string(index=False))  # value and error bar of mass, centre of gravity and inertia
