"""One step of a drive: stops, delayed feedback and play, against closed forms and MuJoCo."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steelyard.actuators import CommandLog, Load
from steelyard.actuators.drive_structure import FIRST_POSITION, FIRST_VELOCITY, DriveStructure
from steelyard.actuators.fit_drive import DriveFit
from steelyard.actuators.rollout import Rollouts
from steelyard.actuators.uncertainty import covariance_of

FREE = {"kp_gain": 1.0, "kd_gain": 1.0, "delay": 0.0, "armature": 0.001, "friction_base": 0.05, "offset": 0.0,
        "friction_viscous": 0.0}  # fmt: skip


def still(time: np.ndarray, load: Load, **more: object) -> CommandLog:
    """A run at rest; the tests change its start and its parameters."""
    zero = np.zeros(len(time))
    return CommandLog("run", time, zero, zero, load, **{"kp": 1.0, "kd": 0.0, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [5e-3, 1.7e-3, 5e-4])
def test_a_sliding_joint_stops_at_its_exact_place(step: float) -> None:
    """Without other forces it slides over I·v²/(2·F), with any step, and so do the derivatives of this way."""
    time = np.arange(0.0, 0.3, 0.005)
    load, v = Load(0.004, 0.0), 2.0
    log = still(time, load, torque_enable=np.zeros(len(time), bool))
    runs, structure = Rollouts([log], step=step), DriveStructure("torque", "M1", ("delay",))
    wrt = ("armature", "friction_base", FIRST_POSITION, FIRST_VELOCITY)
    q, slope = runs.simulate(structure, FREE, wrt, starts=np.array([[0.0], [v]]))
    inertia, dry = load.inertia + FREE["armature"], FREE["friction_base"]
    way = inertia * v**2 / (2.0 * dry)
    stopped = time > inertia * v / dry + step
    np.testing.assert_allclose(q[stopped], way, rtol=1e-9)
    exact = [way / inertia, -way / dry, 1.0, 2.0 * way / v]
    np.testing.assert_allclose(slope[stopped], np.tile(exact, (stopped.sum(), 1)), rtol=1e-8)


def test_a_joint_that_turns_back_within_a_step_keeps_its_energy() -> None:
    """A pendulum without friction and drive turns at the height of its start, to the square of the step."""
    time = np.arange(0.0, 2.0, 0.005)
    log = still(time, Load.pendulum(0.5, 0.1), torque_enable=np.zeros(len(time), bool))
    values = {**FREE, "friction_base": 0.0}
    for step, most in ((2e-3, 2e-4), (5e-4, 2e-5)):
        q, _ = Rollouts([log], step=step).simulate(
            DriveStructure("torque", "M1", ("delay",)), values, (), np.array([[1.0], [0.0]])
        )
        assert abs(float(q.min()) + 1.0) < most


def test_a_delayed_feedback_is_that_of_small_steps() -> None:
    """A spring and a damper 7.3 ms late, with a load under gravity, against explicit steps of 5 µs."""
    load, values = Load.pendulum(0.4, 0.1), {**FREE, "friction_base": 0.0, "feedback_delay": 7.3e-3}
    values |= {"kp_gain": 3.0, "kd_gain": 0.06}
    time = np.arange(0.0, 0.8, 0.005)
    log = CommandLog("run", time, np.full(len(time), 0.5), np.zeros(len(time)), load, kp=1.0, kd=1.0)
    structure = DriveStructure("torque", "M1", ("delay", "feedback_delay"))
    q, _ = Rollouts([log]).simulate(structure, values)
    h, inertia = 5e-6, load.inertia + values["armature"]
    late, per = round(7.3e-3 / h), round(0.005 / h)
    path, speed = [0.0] * (late + 1), [0.0] * (late + 1)
    for _ in range((len(time) - 1) * per):
        torque = 3.0 * (0.5 - path[-1 - late]) - 0.06 * speed[-1 - late]
        v = speed[-1] + h * (torque - load.gravity * math.sin(path[-1])) / inertia
        speed.append(v)
        path.append(path[-1] + h * v)
    np.testing.assert_allclose(q, path[late::per], atol=2e-4 * np.ptp(path))


PLAY = """<mujoco><compiler angle="radian"/>
<option timestep="5e-5" gravity="0 0 -9.81" integrator="implicitfast"/><worldbody><body>
<joint name="gears" type="hinge" axis="0 -1 0" armature="0.0015" damping="0.01" frictionloss="0.03"
  solimpfriction="0.9999 0.9999 0.001" solreffriction="0.0002 1"/>
<inertial pos="0 0 0" mass="1e-6" diaginertia="1e-9 1e-9 1e-9"/>
<body><joint name="load" type="hinge" axis="0 -1 0" limited="true" range="-0.03 0.03" solreflimit="0.0004 1"
  solimplimit="0.9999 0.9999 0.0001"/>
<inertial pos="0 0 -0.1" mass="0.3" diaginertia="1e-9 1e-9 1e-9"/></body></body></worldbody></mujoco>"""


def test_play_is_that_of_two_bodies_in_mujoco() -> None:
    """The drive swings the load through the side that it rests on; the encoder is at the load."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(PLAY)
    data = mujoco.MjData(model)
    time = np.arange(0.0, 1.6, 0.005)
    goal = 0.6 * np.sin(2.0 * np.pi * time) + 0.3 * np.sin(2.0 * np.pi * 3.1 * time)
    played = np.empty(len(time))
    for k in range(len(time)):
        played[k] = data.qpos.sum()
        for _ in range(100):
            q = float(data.qpos.sum())
            data.qfrc_applied[0] = 2.0 * (goal[k] - q) - 0.05 * float(data.qvel[0])
            mujoco.mj_step(model, data)
    log = CommandLog("run", time, goal, played, Load.pendulum(0.3, 0.1), kp=1.0, kd=1.0)
    values = {**FREE, "kp_gain": 2.0, "kd_gain": 0.05, "armature": 0.0015, "friction_base": 0.03,
              "friction_viscous": 0.01, "backlash": 0.06}  # fmt: skip
    q, _ = Rollouts([log]).simulate(DriveStructure("torque", "M1", ("delay", "backlash")), values)
    # Contacts of MuJoCo are soft over 0.4 ms, and a pendulum in free play is sensitive to the time of an impact.
    assert np.sqrt(np.mean((q - played) ** 2)) < 4e-3
    without = {n: x for n, x in values.items() if n != "backlash"}
    rigid, _ = Rollouts([log]).simulate(DriveStructure("torque", "M1", ("delay",)), without)
    assert np.sqrt(np.mean((rigid - played) ** 2)) > 2e-2


def test_the_covariance_of_a_robust_fit_is_that_of_its_loss() -> None:
    """Normal residuals: the variance is that of least squares times E ψ² / (E ψ')², by quadrature."""
    rng = np.random.default_rng(0)
    n, scale = 20_000, 2.0
    time = np.arange(n) * 0.01
    runs = Rollouts([still(time, Load(0.004, 0.0))], step=0.01)
    jacobian, residual = rng.standard_normal((n, 2)), rng.standard_normal(n)
    structure = DriveStructure("torque", "M1", ("delay",))
    fit = DriveFit(structure, FREE, ("armature", "friction_base"), residual, jacobian, None, scale, 0.0, 1)
    covariance, memory = covariance_of(fit, runs)
    x = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi)
    relative = 1.0 + (x / scale) ** 2
    factor = np.trapezoid(density * x**2 / relative, x) / np.trapezoid(density * relative**-1.5, x) ** 2
    assert memory < 1.2
    # 20,000 samples determine a variance to 1 %; the memory adds a few percent.
    np.testing.assert_allclose(np.diag(covariance) * n, factor, rtol=0.15)
