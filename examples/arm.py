"""A simulated arm that stands for your robot: the examples take their logs from it.

With your own robot, replace `ARM` by the path of its URDF, MJCF or Denavit-Hartenberg table, and `record(…)` by the
path of a log.
"""

import numpy as np

import steelyard as sy

ARM = sy.load_robot("rotradi")  # three joints; `sy.builtin_names()` lists the others
TRUTH = sy.Model.nominal(ARM)


def record(seed: int, model: sy.Model = TRUTH, seconds: float = 10.0, noise: float = 0.3) -> sy.Log:
    """Return the log of a motion with five sines per joint, sampled at 200 Hz, with noise of the sensors.

    Args:
        seed: Seed of the motion and of the noise.
        model: Model that produces the torques.
        seconds: Duration [s].
        noise: Standard deviation of the torque noise [N m].
    """
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.005)
    w = 2.0 * np.pi * np.arange(1, 6) / 10.0  # rad/s
    amplitude = rng.normal(size=(5, model.robot.dof)) * 0.5 / w[:, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, size=(5, model.robot.dof))
    angle = t[:, None, None] * w[:, None] + phase
    q = np.sum(amplitude * np.sin(angle), axis=1)
    dq = np.sum(amplitude * w[:, None] * np.cos(angle), axis=1)
    ddq = np.sum(-amplitude * w[:, None] ** 2 * np.sin(angle), axis=1)
    tau = model.torque(q, dq, ddq) + rng.normal(scale=noise, size=q.shape)
    return sy.Log(model.robot.joint_names, t, q, dq + rng.normal(scale=1e-3, size=q.shape), tau=tau)
