"""Via-point programs as data, text and genes, and errors of impossible programs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard.errors import ShapeError, UnknownNameError
from steelyard.excitation.interpolator import (
    CircleMove,
    JointMove,
    LineMove,
    MotionLimits,
    Pause,
    Program,
    ProgramError,
    ProgramRegion,
    interpolate,
    program_from_dict,
    program_text,
    program_to_dict,
)
from steelyard.robot import load_robot
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose

NS16 = load_robot("ns16")
HOME = np.array([0.1, 0.1, 1.8, 0.2, 0.8, 0.1])  # elbow and wrist bent: far from singular postures


def limits():
    return MotionLimits.of(NS16, 8.0)


@pytest.fixture(scope="module")
def tip():
    return InverseKinematics.of(NS16).tip


def test_impossible_programs_are_refused_with_the_move(tip):
    start = tip.pose(HOME)

    def run(*moves):
        return interpolate(NS16, Program(HOME, moves), limits(), cycle=0.05)

    with pytest.raises(ProgramError, match=r"Move 1.*'q2'.*outside its limits"):
        run(JointMove((0.0, 3.0, 0.0, 0.0, 0.0, 0.0)))
    with pytest.raises(ProgramError, match=r"Move 2.*cannot reach the pose"):
        run(JointMove(tuple(HOME + 0.1)), JointMove(Pose(np.array([9.0, 0, 0]), np.eye(3))))
    with pytest.raises(ProgramError, match=r"along the path.*out of reach"):
        run(LineMove(Pose(start.position + np.array([3.0, 0, 0]), start.rotation)))
    with pytest.raises(ProgramError, match="on one line"):
        run(CircleMove(Pose(start.position + np.array([0.1, 0, 0])), Pose(start.position + np.array([0.2, 0, 0]))))
    with pytest.raises(ProgramError, match="does not move"):
        run(JointMove(tuple(HOME)))
    with pytest.raises(ShapeError):
        interpolate(NS16, Program((0.0,), (Pause(1.0),)), limits())


@pytest.mark.parametrize(
    "make",
    [
        lambda: JointMove(tuple(HOME), speed=0.0),
        lambda: JointMove(tuple(HOME), speed=1.5),
        lambda: LineMove(Pose(np.zeros(3)), speed=-1.0),
        lambda: LineMove(Pose(np.zeros(3)), fly=1.1),
        lambda: CircleMove(Pose(np.zeros(3)), Pose(np.zeros(3)), speed=0.0),
        lambda: Pause(0.0),
        lambda: Program(HOME, ()),
        lambda: MotionLimits.of(NS16, 0.0),
        lambda: MotionLimits.of(NS16, np.inf),
        lambda: ProgramRegion(np.zeros(6), -np.ones(6)),
        lambda: ProgramRegion(np.zeros(6), np.ones(6), speed=(0.0, 1.0)),
        lambda: ProgramRegion(np.zeros(2), np.ones(2)),
        lambda: program_from_dict({"format": "other"}),
        lambda: program_from_dict({"format": "steelyard-program-1", "start": [0.0]}),
    ],
)
def test_impossible_moves_are_refused(make):
    with pytest.raises(ProgramError):
        make()


def test_programs_survive_json_and_are_readable(tip):
    pose = tip.pose(HOME)
    moves = (
        JointMove(tuple(HOME), 0.5, 0.3),
        JointMove(pose),
        LineMove(pose),
        CircleMove(Pose(np.ones(3)), pose),
        Pause(1.0),
    )
    program = Program(HOME, moves)
    document = program_to_dict(program)
    assert program_to_dict(program_from_dict(json.loads(json.dumps(document)))) == document
    lines = program_text(program, NS16).splitlines()
    assert [line.split()[0] for line in lines] == ["#", "START", "JOINTS", "JOINTS", "LINE", "CIRCLE", "WAIT"]
    assert "SPEED 50 %  FLY 30 %" in lines[2]
    assert f"{np.degrees(0.8):.4f}" in lines[2]
    document["moves"][0]["move"] = "jump"
    with pytest.raises(UnknownNameError):
        program_from_dict(document)


def test_genes_span_the_region(tip):
    here = tip.pose(HOME).position
    region = ProgramRegion([*(here - 0.1), 0, 0, 0], [*(here + 0.1), 0.5, 0.5, 0.5], speed=(0.2, 0.6))
    assert region.genes(6) == 37
    low, high = region.program(np.zeros(13), HOME), region.program(np.ones(13), HOME)
    np.testing.assert_allclose(low.moves[0].target.position, here - 0.1)
    np.testing.assert_allclose(high.moves[1].target.position, here + 0.1)
    assert (low.moves[0].speed, high.moves[0].speed) == (0.2, pytest.approx(0.6))
    assert [move.fly for move in high.moves] == [0.5, 0.0]
    joints = ProgramRegion(HOME - 0.3, HOME + 0.3, space="joints")
    motion = interpolate(NS16, joints.program(np.linspace(0, 1, joints.genes(4)), HOME), limits())
    assert np.all(motion.peak_bounds(2) <= limits().acceleration)
    with pytest.raises(ShapeError):
        region.program(np.zeros(12), HOME)
    with pytest.raises(ProgramError):
        region.program(np.full(13, 1.2), HOME)
