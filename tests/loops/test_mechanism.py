"""Motion, forces and structure of mechanisms with closed loops, against MuJoCo and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from loop_plants import FIVE_BAR, FOUR_BAR, FREEDOM, MECHANISMS, SIZES, smooth

from steelyard import Mechanism, Model, base_parameters, inspect_robot, load_robot
from steelyard.errors import LogError, RobotError
from steelyard.regression._structure import fresh_rows
from steelyard.robot.free import whole_quaternion
from steelyard.robot.robot import Robot

mujoco = pytest.importorskip("mujoco")


def to_mujoco(robot: Robot, model, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> tuple[np.ndarray, ...]:
    """One state in the coordinates of MuJoCo: a free body has its linear velocity in the world."""
    qpos, qvel, qacc = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    for k in range(model.njnt):
        name, at, dof = model.joint(k).name, model.jnt_qposadr[k], model.jnt_dofadr[k]
        if model.jnt_type[k] != mujoco.mjtJoint.mjJNT_FREE:
            j = robot.joint_index(name)
            qpos[at], qvel[dof], qacc[dof] = q[j], dq[j], ddq[j]
            continue
        own = slice(robot.joint_index(f"{name}_x"), robot.joint_index(f"{name}_x") + 6)
        x, v, a = q[own], dq[own], ddq[own]
        quaternion = whole_quaternion(x[3:])
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, quaternion)
        R = R.reshape(3, 3)
        qpos[at : at + 7] = [*x[:3], *quaternion]
        qvel[dof : dof + 6] = [*(R @ v[:3]), *v[3:]]
        qacc[dof : dof + 6] = [*(R @ (a[:3] + np.cross(v[3:], v[:3]))), *a[3:]]
    return qpos, qvel, qacc


def equality_rows(model, data) -> tuple[np.ndarray, np.ndarray]:
    """Gaps and Jacobian of MuJoCo's equality constraints."""
    n = data.ne
    J = np.zeros((n, model.nv))
    if mujoco.mj_isSparse(model):
        for r in range(n):
            own = slice(data.efc_J_rowadr[r], data.efc_J_rowadr[r] + data.efc_J_rownnz[r])
            J[r, data.efc_J_colind[own]] = data.efc_J[own]
    else:
        J = np.array(data.efc_J).reshape(-1, model.nv)[:n]
    return np.array(data.efc_pos[:n]), J


@pytest.mark.parametrize("name", MECHANISMS)
def test_motion_and_torques_are_those_of_mujoco(name: str) -> None:
    """The solved motion keeps MuJoCo's constraints to second order, and its inverse dynamics gives the torques.

    Torques by MuJoCo: M q̈ + h = Sᵀ τ + Jᵀ λ with its mass matrix, bias and constraint Jacobian.
    """
    xml = MECHANISMS[name]
    robot, model = load_robot(xml, loops=True), mujoco.MjModel.from_xml_string(xml)
    mechanism = Mechanism(robot)
    assert mechanism.mobility == FREEDOM[name]
    t = np.arange(0.0, 3.0, 0.01)
    q, dq, ddq = smooth(t, SIZES[name], len(mechanism.measured))
    motion = mechanism.complete(q, dq, ddq)
    assert motion.usable.all()
    tau = mechanism.inverse_dynamics(q, dq, ddq, Model.nominal(robot))
    data, near = mujoco.MjData(model), mujoco.MjData(model)
    # Weights of torques and forces by MuJoCo: lengths in metres, so errors of 1e-9 are rounding of metres and N m.
    for k in (120, 200, 299):
        qpos, qvel, qacc = to_mujoco(robot, model, motion.q[k], motion.dq[k], motion.ddq[k])
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_forward(model, data)
        gap, J = equality_rows(model, data)
        assert np.abs(gap).max() < 1e-9
        assert np.abs(J @ qvel).max() < 1e-8
        # J̇ q̇ by differences along the motion: exact to the square of the step.
        h, turned = 1e-5, []
        for sign in (-1.0, 1.0):
            near.qpos[:] = qpos
            mujoco.mj_integratePos(model, near.qpos, qvel + 0.5 * sign * h * qacc, sign * h)
            mujoco.mj_forward(model, near)
            turned.append(equality_rows(model, near)[1])
        drift = (turned[1] - turned[0]) @ qvel / (2.0 * h)
        assert np.abs(J @ qacc + drift).max() < 1e-5
        force = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, force, qacc)
        force += data.qfrc_bias - data.qfrc_passive
        S = np.zeros((model.nu, model.nv))
        S[np.arange(model.nu), model.jnt_dofadr[model.actuator_trnid[: model.nu, 0]]] = 1.0
        both = np.linalg.lstsq(np.vstack([S, J]).T, force, rcond=1e-9)[0]
        assert tau[k] == pytest.approx(both[: model.nu], abs=1e-7 * max(1.0, np.abs(force).max()))


@pytest.mark.parametrize("name", MECHANISMS)
def test_base_parameters_regroup_at_other_poses(name: str) -> None:
    """Rank equals that of fresh random states of the branch, and with friction it is larger."""
    robot = load_robot(MECHANISMS[name], loops=True)
    base = base_parameters(robot)
    W = fresh_rows(base.structure.dynamics)
    values = np.linalg.svd(W / base.structure.scale, compute_uv=False)
    assert int(np.sum(values > 1e-7 * values[0])) == base.rank
    assert np.abs(W - W[:, list(base.independent)] @ base.matrix).max() < 1e-6 * np.abs(W).max()
    assert base.rank < base_parameters(load_robot(MECHANISMS[name], loops=True), "viscous").rank


def test_a_planar_four_bar_has_eight_base_parameters() -> None:
    """Each link has four parameters that a planar motion can show, in all twelve; the loop takes four of them away.

    Two come from the pins (mass of a link counts at its pin), two from the loop (Khalil & Dombre 2002, chapter 10).
    """
    inspection = inspect_robot(FOUR_BAR)
    assert inspection.loops is not None
    assert (inspection.loops.degrees_of_freedom, inspection.loops.driven) == (1, ("crank",))
    assert inspection.loops.passive == ("pin", "rocker")
    assert inspection.base_parameters is not None
    assert inspection.base_parameters.count == 8


def test_torques_give_the_accelerations_of_pinocchio() -> None:
    """Pinocchio's constrained forward dynamics returns the accelerations whose torques were computed here."""
    pin = pytest.importorskip("pinocchio")
    model = _pinocchio_four_bar(pin)
    robot = load_robot(FOUR_BAR, loops=True)
    mechanism = Mechanism(robot)
    t = np.arange(0.0, 3.0, 0.01)
    q, dq, ddq = smooth(t, SIZES["four-bar"], 1)
    motion = mechanism.complete(q, dq, ddq)
    tau = mechanism.inverse_dynamics(q, dq, ddq, Model.nominal(robot))
    crank, rocker = model.getJointId("pin"), model.getJointId("rocker")
    ends = (pin.SE3(np.eye(3), np.array([0.4, 0.0, 0.1])), pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.25])))
    loop = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, crank, ends[0], rocker, ends[1])
    own, contact = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    own.append(loop)
    contact.append(loop.createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, own, contact)
    order = [robot.joint_index(str(name)) for name in model.names[1:]]
    # The out-of-plane row repeats others, which Pinocchio's proximal solver treats.
    settings = pin.ProximalSettings(1e-12, 1e-10, 200)
    for k in (100, 200, 299):
        push = np.zeros(model.nv)
        push[order.index(robot.joint_index("crank"))] = tau[k, 0]
        x, v = motion.q[k, order], motion.dq[k, order]
        a = pin.constraintDynamics(model, data, x, v, push, own, contact, settings)
        assert a == pytest.approx(motion.ddq[k, order], abs=1e-5 * max(1.0, np.abs(motion.ddq[k]).max()))


def _pinocchio_four_bar(pin):
    """The open tree of the four-bar, built from the inertias that MuJoCo computes."""
    m = mujoco.MjModel.from_xml_string(FOUR_BAR)
    model, parents = pin.Model(), {0: 0}
    for body in range(1, m.nbody):
        joint = m.joint(int(m.body_jntadr[body])).name
        place = pin.SE3(np.eye(3), np.array(m.body_pos[body]))
        parents[body] = model.addJoint(parents[int(m.body_parentid[body])], pin.JointModelRY(), place, joint)
        turn = pin.Quaternion(*m.body_iquat[body]).matrix()
        tensor = turn @ np.diag(m.body_inertia[body]) @ turn.T
        own = pin.Inertia(float(m.body_mass[body]), np.array(m.body_ipos[body]), tensor)
        model.appendBodyToJoint(parents[body], own, pin.SE3.Identity())
    return model


def test_a_full_turn_of_the_crank_stays_on_its_branch() -> None:
    """Grashof: the shortest bar turns fully; the angles of the pins follow without a jump."""
    mechanism = Mechanism(FOUR_BAR)
    crank = np.linspace(0.0, 6.0 * np.pi, 4001)[:, None]
    motion = mechanism.complete(crank, np.ones_like(crank), np.zeros_like(crank))
    assert motion.usable.all()
    rocker = motion.q[:, mechanism.robot.joint_index("rocker")]
    assert np.abs(np.diff(rocker)).max() < 0.02  # no jump to the other branch
    assert rocker[0] == pytest.approx(rocker[-1], abs=1e-9)
    step = crank[1, 0] - crank[0, 0]
    assert motion.dq[1:-1] == pytest.approx(np.gradient(motion.q, step, axis=0)[1:-1], abs=1e-4)


def test_singular_poses_are_left_out() -> None:
    """A five-bar whose forearms come into line cannot be solved there; both sides of it can."""
    mechanism = Mechanism(FIVE_BAR)
    t = np.linspace(0.0, 1.0, 400)[:, None]
    q = np.hstack([0.75 * t, -0.75 * t])  # the elbows move apart until the forearms are in line
    motion = mechanism.complete(q)
    assert motion.usable[:200].all()
    assert not motion.usable[-1]
    first = int(np.argmin(motion.usable))
    assert not motion.usable[first:].any()


def test_too_few_encoders_are_refused_with_the_open_joints() -> None:
    with pytest.raises(LogError, match=r"2 degrees of freedom.*left determine only 1.*right.*passive"):
        Mechanism(FIVE_BAR, ["left"])
    with pytest.raises(RobotError, match="no closed loop"):
        Mechanism(load_robot("arm7"))


def test_verbs_without_loops_refuse_them_in_one_sentence() -> None:
    import steelyard as sy

    robot = load_robot(FOUR_BAR, loops=True)
    log = sy.Log(("crank",), np.arange(50) * 0.01, np.zeros((50, 1)), tau=np.ones((50, 1)))
    for call in (lambda: sy.identify(robot, [log]), lambda: sy.excite(robot), lambda: sy.check_log(robot, log)):
        with pytest.raises(sy.SteelyardError, match="closes a loop"):
            call()
