"""Payloads from a sensor at the wrist: MuJoCo as an independent plant, the paper's experiment, and bad input."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.errors import SteelyardError
from steelyard.payload import Payload, SensorModel, identify_payload_by_sensor, repeats
from steelyard.payload.payload import cuboid
from steelyard.payload.sensor import wrench_regressor
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation

# A solid steel cuboid, since the paper's "computed" set is physically impossible.
BODY = cuboid(1.91, np.array([0.10, 0.06, 0.04]), np.array([0.03, -0.011, 0.073]))
ROBOT = load_robot("irp6-wrist")
NOISE = np.array([0.3] * 3 + [0.02] * 3)  # N, N m, like a JR3 sensor

MJCF = """<mujoco><option timestep="0.0005" gravity="0 0 -9.81" integrator="RK4"><flag contact="disable"/></option>
<worldbody>
<body name="a" pos="0 0 0.3"><joint name="j1" axis="0 0 1" armature="4"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.3" mass="5"/>
<body name="b" pos="0 0 0.3"><joint name="j2" axis="0 1 0" armature="4"/>
<geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0" mass="3"/>
<body name="c" pos="0.3 0 0"><joint name="j3" axis="1 0 0" armature="0.2"/>
<geom type="capsule" size="0.03" fromto="0 0 0 0.1 0 0" mass="1"/>
<body name="load" pos="0.12 0 0" euler="0 90 0"><site name="wrist"/>
<geom type="box" size="0.05 0.03 0.02" pos="0.03 -0.011 0.073" mass="1.91"/></body></body></body></body></worldbody>
<actuator><position joint="j1" kp="400" kv="40"/><position joint="j2" kp="400" kv="40"/>
<position joint="j3" kp="20" kv="1"/></actuator>
<sensor><force site="wrist"/><torque site="wrist"/></sensor></mujoco>"""


def test_payload_of_a_mujoco_model(tmp_path) -> None:
    """The payload is part of an MJCF; MuJoCo simulates the position controllers and the sensor."""
    path = tmp_path / "arm.xml"
    path.write_text(MJCF)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    rows = []
    for k in range(16_000):
        data.ctrl[:] = 0.8 * np.sin(np.array([3.1, 2.3, 5.3]) * data.time) * min(1.0, data.time) ** 2
        if k % 4 == 0:  # the sensor data must belong to the command of this step
            mujoco.mj_forward(model, data)
            rows.append(np.concatenate([[data.time], data.qpos, data.qvel, data.sensordata]))
        mujoco.mj_step(model, data)
    table = np.array(rows)
    robot = load_robot(path)
    # MuJoCo's sensor at a site measures the wrench of the parent on the child. The rotors are heavy, so commands of
    # half a millisecond give smooth motions.
    log = Log(robot.joint_names, table[:, 0], table[:, 1:4], dq=table[:, 4:7], channels={"wrench": table[:, 7:]})
    for form in (SensorModel(bias=False), SensorModel("integral", window=0.2, bias=False)):
        found = identify_payload_by_sensor(robot, log, "wrist", form, physical=False)
        assert found.mass == pytest.approx(1.91, rel=0.01)
        np.testing.assert_allclose(found.center_of_gravity, [0.03, -0.011, 0.073], atol=0.001)
        np.testing.assert_allclose(found.parameters[4:], BODY[4:], atol=0.01 * np.abs(BODY[4:]).max())


def played(seed: int, duration: float, noise: np.ndarray = NOISE, bias: float = 0.0, size: float = 1.0) -> Log:
    """A log of a smooth motion of all five joints with the wrench of the cuboid, sensor noise and bias."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 0.004)
    w = 2.0 * np.pi / duration * np.array([1.0, 1.0, 2.0, 3.0, 2.0])
    amplitude = size * np.array([1.2, 0.5, 0.6, 1.2, 1.5])
    angle = t[:, None] * w + np.arange(5)
    q, dq, ddq = amplitude * np.sin(angle), amplitude * w * np.cos(angle), -amplitude * w**2 * np.sin(angle)
    wrench = wrench_regressor(FrameKinematics(ROBOT, ROBOT.frame())(q, dq, ddq)) @ BODY
    wrench = wrench + bias + noise * rng.normal(size=wrench.shape)
    return Log(ROBOT.joint_names, t, q, dq=dq, channels={"wrench": wrench})


def test_errors_increase_from_mass_to_inertia_and_with_slow_motion() -> None:
    """The mass has the smallest error, then first moments, then inertias, most of all in slow motion."""
    relative = {}
    for duration in (1.83, 10.0):
        found = repeats(
            [identify_payload_by_sensor(ROBOT, played(s, duration, size=0.3), physical=False) for s in range(12)]
        )
        relative[duration] = found.std / np.array([BODY[0], *[0.14] * 3, *[BODY[[4, 6, 9]].max()] * 6])
        inside = np.abs(found.mean - BODY) < 2.0 * found.interval(0.99)
        assert inside.all()  # the bias of central differences is smaller than the noise of twelve runs
    fast, slow = relative[1.83], relative[10.0]
    assert fast[0] < np.median(fast[1:4]) < np.median(fast[4:])
    assert np.median(slow[4:]) > 3.0 * np.median(fast[4:])
    assert np.median(slow[4:] / fast[4:]) > np.median(slow[:4] / fast[:4])


def test_bias_tare_and_coverage() -> None:
    deviations = []
    for seed in range(8):
        found = identify_payload_by_sensor(ROBOT, played(seed, 4.0, bias=1.5), physical=False)
        deviations.append((found.parameters - BODY) / found.standard_errors)
    assert 0.6 < np.std(deviations) < 1.4  # eighty deviations: 1 ± 0.08
    half = Payload(ROBOT.link_names[-1], 0.5 * BODY, np.zeros((10, 10)))
    rest = identify_payload_by_sensor(ROBOT, played(0, 4.0), tare=half)
    assert rest.mass == pytest.approx(0.5 * 1.91, rel=0.02)
    assert rest.possible


@pytest.mark.parametrize("window", [0.1, None])
def test_the_integral_forms_agree(window: float | None) -> None:
    quiet = played(0, 6.0, noise=np.zeros(6))
    found = identify_payload_by_sensor(ROBOT, quiet, model=SensorModel("integral", window), physical=False)
    np.testing.assert_allclose(found.parameters, BODY, atol=2e-3 * np.abs(BODY).max())


def test_bad_input_is_refused() -> None:
    log = played(0, 2.0)
    bare = Log(log.joints, log.t, log.q)
    with pytest.raises(SteelyardError, match="there is no wrench"):
        identify_payload_by_sensor(ROBOT, bare)
    with pytest.raises(SteelyardError, match="There is no frame 'hand'"):
        identify_payload_by_sensor(ROBOT, log, "hand")
    with pytest.raises(SteelyardError, match="There is no axis 'gx'"):
        SensorModel(axes=("fx", "gx"))
    with pytest.raises(SteelyardError, match="longer than a piece"):
        identify_payload_by_sensor(ROBOT, log, model=SensorModel("integral", window=5.0))
    still = Log(log.joints, log.t, np.zeros_like(log.q), channels=dict(log.channels))
    with pytest.raises(SteelyardError, match="does not identify the whole payload"):
        identify_payload_by_sensor(ROBOT, still, preparation=Preparation(cutoff_hz=20.0))
