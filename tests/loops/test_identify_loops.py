"""Mechanisms simulated by MuJoCo with stiff constraints: joints without encoders and planted inertias come back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from loop_plants import DAMPING, FOUR_BAR, MECHANISMS, PALLETISER, SHARE_OF_NOISE, SIZES, LoopLog, loop_log
from typer.testing import CliRunner

from steelyard import Log, Mechanism, check_loops, identify_floating, load_model, load_robot
from steelyard.cli import app
from steelyard.errors import LogError
from steelyard.floating import FloatingIdentification

mujoco = pytest.importorskip("mujoco")


def as_log(plant: LoopLog) -> Log:
    return Log(plant.joints, plant.t, plant.q, tau=plant.tau)


def true_theta(plant: LoopLog, result: FloatingIdentification) -> np.ndarray:
    """Parameters of the plant: planted bodies, and damping of the drives."""
    robot = load_robot(plant.plant, loops=True)
    names = [n for n in robot.joint_names if not n.startswith("float_")]
    assert len(names) == len(result.model.terms)
    return np.concatenate([robot.inertial_parameters, [DAMPING if n in plant.joints else 0.0 for n in names]])


def identified(
    name: str, seconds: float, cutoff_hz: float | None = None, terms: str | None = "viscous"
) -> tuple[LoopLog, FloatingIdentification]:
    plant = loop_log(mujoco, MECHANISMS[name], SIZES[name], seconds)
    robot = load_robot(MECHANISMS[name], loops=True)
    solved = Mechanism(robot).complete(plant.qpos[:, [plant.plant.joint(n).qposadr[0] for n in plant.joints]])
    assert solved.usable.all()
    for k in range(plant.plant.njnt):
        if plant.plant.jnt_type[k] in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            own = solved.q[:, robot.joint_index(plant.plant.joint(k).name)]
            # MuJoCo's constraints give by micrometres.
            assert np.abs(own - plant.qpos[:, plant.plant.jnt_qposadr[k]]).max() < 2e-5
    result = identify_floating(robot, as_log(plant), terms=terms, cutoff_hz=cutoff_hz, holdout=0.3)
    return plant, result


def assert_recovered(plant: LoopLog, result: FloatingIdentification) -> None:
    estimate, score = result.fit.estimate, result.scores[0]
    assert result.fit.free is not None
    true = estimate.base.matrix @ true_theta(plant, result)
    z = (result.fit.free.beta - true) / estimate.standard_errors
    # 95 % of a normal distribution lie within 2; a log has few independent stretches, so single ones miss more. With
    # one degree of freedom all parameters are correlated and miss together, so their share says nothing.
    assert result.loops is not None
    assert result.loops["degrees_of_freedom"] == 1 or np.mean(np.abs(z) < 2.0) > 0.75
    assert np.abs(z).max() < 5.0
    # The low-pass removes most of the noise of the torques, and adds that of accelerations from encoders.
    noise = 1.5 * SHARE_OF_NOISE * plant.true_tau.std(axis=0)
    assert np.all(np.array(score.rms) < noise)
    assert score.error < 0.1 * score.described
    assert result.model.possible


@pytest.mark.parametrize("name", ["four-bar", "palletiser", "five-bar"])
def test_planted_bodies_of_planar_mechanisms_come_back(name: str) -> None:
    assert_recovered(*identified(name, 12.0))


@pytest.mark.proof
@pytest.mark.parametrize("name", MECHANISMS)
def test_planted_bodies_of_six_mechanisms_come_back(name: str) -> None:
    assert_recovered(*identified(name, 25.0))


def test_a_parallel_ankle_is_identified_from_its_motors() -> None:
    plant, result = identified("ankle", 12.0, 8.0, terms=None)
    assert result.loops is not None
    assert (result.loops["degrees_of_freedom"], result.loops["measured"]) == (2, ["motor_l", "motor_r"])
    assert np.all(np.array(result.scores[0].rms) < 1.5 * SHARE_OF_NOISE * plant.true_tau.std(axis=0))
    assert "2 closed loop(s), 2 degree(s) of freedom" in " ".join(result.verdict().points)


@pytest.fixture(scope="module")
def palletiser(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LoopLog]:
    """Description, log and mapping of an arm with a parallelogram."""
    folder = tmp_path_factory.mktemp("palletiser")
    plant = loop_log(mujoco, PALLETISER, SIZES["palletiser"], 8.0)
    # Without <actuator>, the mapping names the drives.
    (folder / "arm.xml").write_text(PALLETISER.replace("<actuator>", "<!--").replace("</actuator>", "-->"))
    columns = np.column_stack([plant.t, plant.q, plant.tau])
    np.savetxt(folder / "log.csv", columns, delimiter=",", header="t,a,b,c,ta,tb,tc", comments="")
    (folder / "map.toml").write_text(
        'time = "t"\njoints = ["turn", "lift", "drive"]\nposition = ["a", "b", "c"]\ntorque = ["ta", "tb", "tc"]\n'
    )
    return folder, plant


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(w) for w in words])
    return done.exit_code, " ".join((done.stdout + done.stderr).split())


def test_the_command_writes_models_that_load_with_their_loops(palletiser: tuple[Path, LoopLog]) -> None:
    """The exported MJCF keeps its equality constraints, the URDF has a loop table, and both predict the plant."""
    folder, plant = palletiser
    words = ("--map", folder / "map.toml", "--holdout", "0.3", "--cutoff", "8", "--terms", "viscous")
    code, text = run("identify", folder / "arm.xml", folder / "log.csv", *words, "-o", folder / "run")
    assert code == 0, text
    document = json.loads((folder / "run" / "result.json").read_text())
    assert document["loops"]["solved"] == ["elbow", "rod"]
    written = mujoco.MjModel.from_xml_path(str(folder / "run" / "palletiser.xml"))
    assert written.neq == 1
    slope = np.gradient(plant.qpos[:, [0, 1, 3]], plant.t, axis=0)
    turn = np.gradient(slope, plant.t, axis=0)
    inner = slice(300, -20)
    for file in (folder / "run" / "palletiser.xml", folder / "run"):
        model = load_model(file)
        tau = Mechanism(model.robot, ["turn", "lift", "drive"]).inverse_dynamics(
            plant.qpos[inner][:, [0, 1, 3]], slope[inner], turn[inner], model
        )
        # Differences at 250 Hz of motions up to 1.2 Hz, with the fit's own error.
        assert np.all(np.std(tau - plant.true_tau[inner], axis=0) < 0.02 * plant.true_tau[inner].std(axis=0))
    code, text = run("predict", folder / "run", folder / "log.csv")
    assert (code, "closes a loop" in text) == (2, True)


@pytest.mark.proof
def test_check_finds_wrong_signs_and_units(palletiser: tuple[Path, LoopLog]) -> None:
    folder, _ = palletiser
    code, text = run("check", folder / "arm.xml", folder / "log.csv", "--map", folder / "map.toml")
    assert (code, "suitable for identification" in text) == (0, True)
    robot = load_robot(FOUR_BAR, loops=True)
    bar = loop_log(mujoco, FOUR_BAR, SIZES["four-bar"], 6.0)
    for change, words in (
        ({"tau": -bar.tau}, "sign of the torques of 'crank'"),
        ({"q": -bar.q}, "sign of the positions of 'crank'"),
        ({"q": np.degrees(bar.q)}, "positions are in degrees"),
    ):
        signals = {"q": bar.q, "tau": bar.tau} | change
        found = check_loops(robot, Log(bar.joints, bar.t, signals["q"], tau=signals["tau"]))
        assert found.exit_code == 1
        assert any(words in e.message for e in found.entries), found.headline()


def test_loops_that_do_not_close_are_named_with_their_gap(palletiser: tuple[Path, LoopLog]) -> None:
    """The crank of these bars cannot turn to 4 rad: by how much, and which joint would have to move."""
    folder, plant = palletiser
    robot = load_robot(BARS, loops=TABLE)
    log = Log(("crank",), plant.t, plant.q[:, 2:] + 4.0, tau=plant.tau[:, 2:])
    with pytest.raises(LogError, match=r"loop 'rod' does not close: .* mm are missing at t = .*'crank'.*offset"):
        identify_floating(robot, log)
    code, text = run("identify", folder / "arm.xml", folder / "log.csv")
    assert (code, "driven joints are not stated" in text) == (2, True)


BARS = "".join(
    [
        '<robot name="short"><link name="base"/>',
        *(
            f'<link name="{n}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.01" '
            f'izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            for n in ("crank", "rod", "rocker")
        ),
        *(
            f'<joint name="{n}" type="continuous"><parent link="{p}"/><child link="{n}"/><axis xyz="0 0 1"/>'
            f'<origin xyz="{x} 0 0"/></joint>'
            for n, p, x in (("crank", "base", "0"), ("rod", "crank", "0.3"), ("rocker", "base", "0.5"))
        ),
        "</robot>",
    ]
)
# A non-Grashof four-bar: the crank cannot turn fully.
TABLE = {
    "driven": ["crank"],
    "start": {"crank": 0.6, "rod": -0.9, "rocker": 1.6},
    "loops": {"rod": {"first": "rod", "first_position": [0.3, 0, 0], "second": "rocker", "second_position": [0.2, 0, 0],
                      "kind": "pin"}},
}  # fmt: skip
