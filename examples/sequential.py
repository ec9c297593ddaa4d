"""Identify a robot that may only make simple movements: one joint after the other, each with few parameters."""

import numpy as np

import steelyard as sy

arm = sy.load_robot("irp6")
truth = sy.Model.nominal(arm)
t = np.arange(1000) * 0.004
w = np.array([3.0, 7.0])  # rad/s


def movement_log(motor: str) -> sy.Log:
    """Return the log of a movement of one motor."""
    q, dq, ddq = (
        sy.Movement.path(arm, {motor: (0.3 * w**k * np.sin(t[:, None] * w + k * np.pi / 2)).sum(1)}) for k in range(3)
    )
    noise = np.random.default_rng(0).normal(size=q.shape)
    return sy.Log(arm.joint_names, t, q, dq, ddq, truth.torque(q, dq, ddq) + noise)


plan = [
    sy.Movement(
        "motor 2", (movement_log("motor2"),), moves=("motor2",),
        finds={"J2": {"Izz2": 1.0, "Ia_motor2": 1.0, "m3": 0.455**2}, "X7": {"mx2": 1.0, "m3": 0.455},
               "F2c": {"Fc_motor2": 1.0}}, neglects="rest",
    ),
    sy.Movement(
        "motor 3", (movement_log("motor3"),), moves=("motor3",),
        finds={"X4": {"Izz3": 1.0, "Ia_motor3": 1.0}, "X6": {"mx3": 1.0}, "F3c": {"Fc_motor3": 1.0},
               "F3v": {"Fv_motor3": 1.0}}, neglects="rest",
    ),
]  # fmt: skip
result = sy.identify_sequentially(
    arm, plan, terms=truth.terms, known={"Fv_motor2": (26.0, 0.5)}, preparation="as logged"
)
for step in result.steps:
    for name, value, error in zip(step.names, step.values, step.standard_errors, strict=True):
        print(f"{step.movement}: {name:4} {value:8.3f} ± {error:.2g}")
