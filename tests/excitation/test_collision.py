"""Distances between bodies and to obstacles are kept at every instant."""

from __future__ import annotations

import html
import sys
from pathlib import Path

import numpy as np
import pytest
from excitation_cases import central

import steelyard as sy
from steelyard.excitation import SearchSettings, design_motions
from steelyard.excitation.constraints._collision import collision
from steelyard.excitation.trajectories import Fourier, Trajectory

pin = pytest.importorskip("pinocchio", reason="collision needs Pinocchio (the extra collision)")
coal = pytest.importorskip("coal")

BODY = """<link name="l{k}"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0.2 0 0"/><geometry><box size="0.3 0.05 0.05"/></geometry></collision></link>
<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{x} 0 0"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="2" effort="100"/></joint>"""


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """Three bars in a horizontal plane that can fold onto each other."""
    bodies = "".join(BODY.format(k=k, parent=f"l{k - 1}" if k else "base", x=0.4 if k else 0.0) for k in range(3))
    file = tmp_path_factory.mktemp("arm") / "arm.urdf"
    file.write_text(f'<robot name="bars"><link name="base"/>{bodies}</robot>')
    return sy.load_robot(file), file


def wall(x):
    placement = np.eye(4)
    placement[0, 3] = x
    return ("wall", coal.Box(0.1, 4.0, 4.0), placement)


def test_gradients_of_distances(arm):
    robot, file = arm
    families = [Fourier(2, 4.0)] * 3
    constraint = collision(robot, file, obstacles=[wall(-1.5)])(families)
    rng = np.random.default_rng(0)
    x, direction = 0.3 * rng.normal(size=(2, sum(f.size for f in families)))
    values, pull = constraint.evaluate(x)
    multipliers = rng.uniform(size=len(values))
    # Nearest points slide along flat faces; GJK's distances are exact to 1e-6.
    slope = central(lambda y: float(multipliers @ constraint.evaluate(y)[0]), x, direction, 1e-3)
    assert pull(multipliers) @ direction == pytest.approx(slope, rel=1e-3)


def test_bounds_cover_every_instant(arm):
    robot, file = arm
    families = [Fourier(2, 4.0)] * 3
    constraint = collision(robot, file)(families)
    for seed in range(3):
        x = 0.8 * np.random.default_rng(seed).normal(size=9)
        motion = Trajectory(tuple(families), x)
        t = np.linspace(0.0, 4.0, 801)
        dense = max(0.02 - constraint.scene.distances(q).min() for q in motion.derivative(t, 0))
        bound = constraint.unit * constraint.excess(motion)
        assert bound >= dense - 1e-9
        if bound > 0.0:
            assert bound <= max(dense, 0.0) + 2e-3  # the bound's resolution is a millimetre


def test_a_plan_avoids_itself_and_a_wall(arm):
    robot, file = arm
    quick = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 8.0), repeats=1, iterations=10)
    options = {"harmonics": 3, "duration": 6.0, "rate": 50.0, "search": quick, "limits": {"ddq": 5.0}}
    free_plan = sy.excite(robot, **options)
    turns = np.cumsum(free_plan.trajectory.sample(np.linspace(0.0, 6.0, 601))[0], axis=1)
    farthest = float((np.cos(turns) @ [0.4, 0.4, 0.35]).max())
    near = collision(robot, file, obstacles=[wall(0.9 * farthest + 0.05)])
    assert near(free_plan.trajectory.families).excess(free_plan.trajectory) > 0.0
    plan = sy.excite(robot, constraints=[near], **options)
    assert plan.violation == 0.0
    assert plan.margins["distances"] <= 0.0
    scene = near(plan.trajectory.families).scene
    t = np.linspace(0.0, 6.0, 3001)
    assert min(scene.distances(q).min() for q in plan.trajectory.derivative(t, 0)) >= 0.02


def test_an_unavoidable_wall_is_an_error(arm):
    robot, file = arm
    quick = SearchSettings(starts=1, survivors=(), sharpness=(4.0,), repeats=1, iterations=5)
    with pytest.raises(sy.ExcitationError, match="comes within"):
        sy.excite(robot, constraints=[collision(robot, file, obstacles=[wall(0.0)])], search=quick)


def test_collision_geometry_comes_from_the_robots_own_file(arm):
    robot, file = arm
    quick = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 8.0), repeats=1, iterations=10)
    options = {"harmonics": 3, "duration": 6.0, "rate": 50.0, "search": quick, "limits": {"ddq": 5.0}}
    free, safe = sy.excite(robot, **options), sy.excite(robot, collision=True, clearance=0.35, **options)
    scene = collision(robot, file)(safe.trajectory.families).scene
    nearest = [
        min(scene.distances(q).min() for q in plan.trajectory.derivative(np.linspace(0.0, 6.0, 601), 0))
        for plan in (free, safe)
    ]
    assert nearest[0] < 0.35 < nearest[1] + 1e-6  # GJK's distances are exact to 1e-6
    assert safe.notes == ()
    assert np.array_equal(sy.excite(robot, collision=None, clearance=0.35, **options).trajectory.coefficients,
                          safe.trajectory.coefficients)  # fmt: skip


def colliding_instants(file, motion, samples):
    """Count the samples at which bodies that are not neighbours touch, by Pinocchio and the original meshes."""
    model = pin.buildModelFromUrdf(str(file))
    folders = [str(p) for p in Path(file).parents][:6]
    bodies = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.COLLISION, None, folders)
    joints = [body.parentJoint for body in bodies.geometryObjects]
    for b, two in enumerate(joints):
        for a, one in enumerate(joints[:b]):
            if one != two and model.parents[one] != two and model.parents[two] != one:
                bodies.addCollisionPair(pin.CollisionPair(a, b))
    data, results = model.createData(), bodies.createData()
    return sum(
        pin.computeCollisions(model, data, bodies, results, pin.integrate(model, pin.neutral(model), q), True)
        for q in motion.derivative(np.linspace(0.0, motion.duration, samples), 0)
    )


def test_bodies_of_a_ur5_that_are_always_near_each_other_do_not_touch():
    """Forearm and second wrist are never 2 cm apart, and without a constraint they collide when the wrist folds."""
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    file = folder / "ur_description" / "urdf" / "ur5_robot.urdf"
    if not file.exists():
        pytest.skip("example-robot-data is not installed")
    robot = sy.load_robot(file)
    quick = SearchSettings(starts=1, survivors=(), sharpness=(4.0,), repeats=1, iterations=5)
    options = {"harmonics": 2, "duration": 5.0, "rate": 50.0, "search": quick, "seed": 1}
    free_plan = sy.excite(robot, **options)
    assert colliding_instants(file, free_plan.trajectory, 300) > 0
    design = design_motions(robot, collision=None, **options)
    # Five thousand instants, most of them between the samples of the search.
    assert colliding_instants(file, design.plan.trajectory, 5000) == 0
    assert design.verdict[0] == "good"
    assert any("keeps them from touching" in note and "forearm_link_0–wrist_2_link_0" in note for note in design.notes)


def test_hulls_that_overlap_at_zero_overlap_by_no_more(tmp_path):
    """Three balls of 10 cm on links of 2 cm: the outer ones are 4 cm apart at zero, and concentric when folded."""
    box, ball = '<origin xyz="0.2 0 0"/><geometry><box size="0.3 0.05 0.05"/>', '<geometry><sphere radius="0.1"/>'
    body = BODY.replace(box, ball)
    bodies = "".join(body.format(k=k, parent=f"l{k - 1}" if k else "base", x=0.02 if k else 0.0) for k in range(3))
    file = tmp_path / "balls.urdf"
    file.write_text(f'<robot name="balls"><link name="base"/>{bodies}</robot>')
    robot = sy.load_robot(file)
    constraint = collision(robot, file)([Fourier(2, 4.0)] * 3)
    assert constraint.scene.names == [("l0_0", "l2_0")]
    assert constraint.clearance == pytest.approx([-0.16 - 1e-3], abs=1e-6)  # 4 cm between centres, two radii, 1 mm
    stretched, folded = np.zeros(3), np.array([0.0, 3.0, 0.0])
    assert constraint.at_rest(stretched)[0] < 0.0 < constraint.at_rest(folded)[0]


def test_without_the_library_the_verdict_is_a_warning(arm, monkeypatch):
    robot, _ = arm
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    quick = SearchSettings(starts=1, survivors=(), sharpness=(4.0,), repeats=1, iterations=2)
    design = design_motions(robot, collision=None, search=quick, harmonics=2, duration=4.0, rate=50.0)
    (note,) = design.unchecked_limits
    assert design.verdict[0] == "warning"
    assert "not checked" in note
    assert "pip install" in note
    assert html.escape(note) in design.page()
    with pytest.raises(sy.SteelyardError, match=r"pinocchio: .*pip install"):
        design_motions(robot, collision=True, search=quick)
