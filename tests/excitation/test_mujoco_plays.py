"""MuJoCo plays designed motions: PD and feed-forward follow them within all limits and without contact."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import public_robot_path

import steelyard as sy
from steelyard.excitation import SearchSettings
from steelyard.excitation.constraints._collision import collision

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle (pip install 'steelyard[oracle]')")


# Hulls of bodies that are bolted together and overlap in every posture.
NEAR = [("base_link", "upper_arm_link"), ("forearm_link", "wrist_2_link"), ("wrist_1_link", "wrist_3_link")]


def load_model(path):
    """Load a URDF whose collision meshes have package:// addresses into MuJoCo."""
    text = path.read_text()
    root = path.parents[4]
    text = text.replace("package://", f"{root}/")
    head = text.index(">", text.index("<robot")) + 1
    options = (
        '<mujoco><compiler strippath="false" discardvisual="true" fusestatic="false" balanceinertia="true"/>'
        '<option timestep="0.001" integrator="implicitfast"/></mujoco>'
    )
    spec = mujoco.MjSpec.from_string(text[:head] + options + text[head:])
    for one, other in [*NEAR, ("base_link", "shoulder_link")]:
        spec.add_exclude(bodyname1=one, bodyname2=other)
    return spec.compile()


def play(robot, model, trajectory):
    """Follow a motion by PD and nominal feed-forward; return the signals and the bodies that touched."""
    data = mujoco.MjData(model)
    order = [model.joint(name).qposadr[0] for name in robot.joint_names]
    t = np.arange(round(trajectory.duration / 0.001)) * 0.001
    q, dq, ddq = trajectory.sample(t)
    nominal = sy.Model.nominal(robot)
    forward = nominal.torque(q, dq, ddq)
    inertia = np.diag(nominal.mass_matrix(q[0]))
    data.qpos[order] = q[0]
    reached, touched = {"q": [], "dq": [], "tau": []}, set()
    for k in range(len(t)):
        tau = forward[k] + 400.0 * inertia * (q[k] - data.qpos[order]) + 40.0 * inertia * (dq[k] - data.qvel[order])
        data.qfrc_applied[order] = tau
        for name, value in (("q", data.qpos[order]), ("dq", data.qvel[order]), ("tau", tau)):
            reached[name].append(np.array(value))
        mujoco.mj_step(model, data)
        for c in range(data.ncon):
            geoms = (data.contact[c].geom1, data.contact[c].geom2)
            touched.add(frozenset(model.body(model.geom(g).bodyid[0]).name for g in geoms))
    return {name: np.array(values) for name, values in reached.items()}, q, touched


@pytest.mark.proof
def test_a_ur10_plays_a_motion_without_contact_or_violation():
    pytest.importorskip("pinocchio")
    path = public_robot_path("ur10")
    robot = sy.load_robot(path)
    ignore = [(f"{a}_0", f"{b}_0") for a, b in NEAR]
    keep = collision(robot, path, package_dirs=[path.parents[4]], ignore=ignore)
    plan = sy.excite(
        robot,
        limits={"q": 2.8, "dq": 2.0, "ddq": 5.0},
        constraints=[keep],
        torque_margin=0.1,
        search=SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=30),
    )
    assert plan.violation == 0.0
    reached, wanted, touched = play(robot, load_model(path), plan.trajectory)
    assert touched == set()
    # rad; the simulation has first-order steps of a millisecond, the feed-forward is exact.
    assert np.abs(reached["q"] - wanted).max() < 5e-3
    assert np.all(np.abs(reached["q"]) <= 2.8 + 5e-3)
    assert np.all(np.abs(reached["dq"]) <= 1.01 * 2.0)
    assert np.all(np.abs(reached["tau"]) <= plan.limits.tau)
