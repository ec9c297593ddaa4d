"""MJCF, C code, simulation and spring torques of elastic joints, used by MuJoCo and a compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from elastic_plants import ElasticArm, Recording, log_of

from steelyard.dynamics.model import Model
from steelyard.elasticity import (
    Elasticity,
    Interval,
    JointElasticity,
    elastic_to_mjcf,
    simulate_elastic,
    spring_torque,
)
from steelyard.errors import ExportError, SteelyardError
from steelyard.export import model_to_mjcf


def known(arm: ElasticArm, friction: bool = True) -> Elasticity:
    """The true elasticity of a plant."""
    n = arm.numbers()
    joints = [
        JointElasticity(
            name, "rad", "two encoders", Interval(1.0 / n["K"][k], 1e-9), damping=Interval(n["D"][k], 1e-6),
            rotor=Interval(n["Ia"][k], 1e-6), friction=(n["Fc"][k], n["Fv"][k]) if friction else (0.0, 0.0),
        )
        for k, name in enumerate(arm.names)
    ]  # fmt: skip
    return Elasticity(arm.robot(), tuple(joints))


def frequencies(model: mujoco.MjModel, q: np.ndarray) -> np.ndarray:
    """Undamped frequencies about a pose without gravity, from mass matrix and stiffness [Hz]."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    columns = []
    for k in range(model.nv):  # M·e_k, which every version of MuJoCo computes
        out, unit = np.zeros(model.nv), np.eye(model.nv)[k]
        mujoco.mj_mulM(model, data, out, unit)
        columns.append(out)
    values = np.linalg.eigvals(np.linalg.solve(np.array(columns), np.diag(model.jnt_stiffness)))
    return np.sort(np.sqrt(np.abs(values.real))) / (2 * np.pi)


@pytest.mark.parametrize("axes", [1, 2, 6])
def test_mjcf_has_the_resonances_of_the_plant(tmp_path, axes: int) -> None:
    arm = ElasticArm(axes)
    path = tmp_path / "elastic.xml"
    assert elastic_to_mjcf(known(arm), path) == ()
    ours, plant = mujoco.MjModel.from_xml_path(str(path)), mujoco.MjModel.from_xml_string(arm.xml())
    q = np.zeros(2 * axes)
    q[::2] = np.linspace(0.2, 0.9, axes)
    # 1e-6 kg of each rotor is in both; the inertias of the URDF are the plant's.
    np.testing.assert_allclose(frequencies(ours, q), frequencies(plant, q), rtol=1e-6, atol=1e-3)
    assert [ours.joint(k).name for k in range(2)] == ["joint1", "joint1_spring"]
    np.testing.assert_allclose(ours.dof_damping[::2], arm.numbers()["Fv"])
    np.testing.assert_allclose(ours.dof_frictionloss[::2], arm.numbers()["Fc"])


def test_an_mjcf_is_edited_in_place(tmp_path) -> None:
    arm = ElasticArm(2)
    path, out = tmp_path / "arm.xml", tmp_path / "elastic.xml"
    model_to_mjcf(Model.nominal(arm.robot()), path)
    text = path.read_text().replace("<worldbody>", '<!-- my arm --><worldbody><geom type="plane" size="1 1 0.1"/>')
    text = text.replace("</mujoco>", '<keyframe><key qpos="0 0"/></keyframe></mujoco>')
    path.write_text(text)
    notes = elastic_to_mjcf(replace(known(arm), source=path), out)
    assert notes == ("Keyframes are left out, because springs add coordinates.",)
    assert "my arm" in out.read_text()
    model = mujoco.MjModel.from_xml_path(str(out))
    assert model.nq == 4
    assert model.ngeom == 1
    assert model.nu == 2
    assert model.nexclude == 1
    # The motors still drive the rotors, whose joints kept their names.
    assert model.joint(model.actuator_trnid[0, 0]).name == "joint1"
    with pytest.raises(ExportError, match="original description"):
        elastic_to_mjcf(replace(known(arm), source=path), path)
    path.write_text(text.replace('inertiafromgeom="false"', 'inertiafromgeom="true"'))
    with pytest.raises(ExportError, match="inertiafromgeom"):
        elastic_to_mjcf(replace(known(arm), source=path), out)


def test_simulation_equals_mujoco() -> None:
    arm = ElasticArm(2)
    elasticity = known(arm, friction=False)
    model = Model.nominal(arm.robot())

    def drive(t: float, theta: np.ndarray, dtheta: np.ndarray) -> np.ndarray:
        return np.array([60.0, 25.0]) * np.sin(2 * np.pi * np.array([2.0, 3.0]) * t) - 20.0 * theta

    log = simulate_elastic(model, elasticity, drive, 0.5, 200.0)
    plant = mujoco.MjModel.from_xml_string(replace(arm, friction=0.0).xml(step=2e-5))
    plant.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(plant)
    for k in range(round(0.5 / 2e-5)):
        data.ctrl[:] = drive((k + 0.5) * 2e-5, data.qpos[::2] + 1e-5 * data.qvel[::2], data.qvel[::2])
        mujoco.mj_step(plant, data)
    q = np.array([log.channels[f"elastic.link.{name}"][-1, 0] for name in arm.names])
    # MuJoCo holds the torque for a step; it is that of the middle of the step, so the rest is of second order.
    np.testing.assert_allclose(log.q[-1], data.qpos[::2], atol=2e-7)
    np.testing.assert_allclose(q, data.qpos[::2] + data.qpos[1::2], atol=2e-7)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_code_computes_links_and_springs(tmp_path) -> None:
    arm = ElasticArm(2)
    elasticity = known(arm)
    for name, text in elasticity.files().items():
        if name.endswith((".c", ".h")):
            (tmp_path / name).write_text(text)
    source = next(tmp_path.glob("*.c"))
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", str(source), "-o",
                    str(tmp_path / "lib.so")], check=True)  # fmt: skip
    lib = ctypes.CDLL(str(tmp_path / "lib.so"))
    n, double = arm.numbers(), ctypes.c_double * 2
    out, spring = double(), double(30.0, -4.0)
    lib.elastic_arm_deflection(spring, out)
    np.testing.assert_allclose(list(out), np.array([30.0, -4.0]) / n["K"])
    theta, dtheta, ddtheta, tau = np.array([0.3, 0.2]), np.array([0.5, -0.4]), np.array([1.0, 2.0]), [50.0, -20.0]
    lib.elastic_arm_link_position(double(*theta), double(*dtheta), double(*ddtheta), double(*tau), out)
    load = np.array(tau) - n["Ia"] * ddtheta - n["Fv"] * dtheta - n["Fc"] * np.sign(dtheta)
    np.testing.assert_allclose(list(out), theta - load / n["K"])
    lib.elastic_arm_spring_torque(double(*theta), double(*dtheta), double(*(theta - 0.01)), double(*dtheta), out)
    np.testing.assert_allclose(list(out), 0.01 * n["K"])


def test_a_spring_measures_the_torque_of_the_links() -> None:
    arm = ElasticArm(2, stiffness=2e3)
    log = log_of(arm, Recording(seconds=6.0, skew=0.0, position_noise=0.0, step=0.0, torque_noise=0.0))
    n = arm.numbers()
    springs = {name: float(n["K"][k]) for k, name in enumerate(arm.names)}
    converted = spring_torque(arm.robot(), log, springs)
    assert converted.meta["torque_used"] == ["joint1", "joint2"]
    # Inverse dynamics of the described links; the springs' damping is 1 % of the torque here.
    h = 1.0 / 500.0
    dq = np.gradient(converted.q, h, axis=0)
    torque = Model.nominal(arm.robot()).torque(converted.q, dq, np.gradient(dq, h, axis=0))
    error = np.std((torque - converted.tau)[50:-50], axis=0) / np.std(torque[50:-50], axis=0)
    assert np.all(error < 0.02)
    with pytest.raises(SteelyardError, match="positive"):
        spring_torque(arm.robot(), log, {"joint1": -1.0})
    with pytest.raises(SteelyardError, match="no joint 'elbow'"):
        spring_torque(arm.robot(), log, {"elbow": 1.0})
