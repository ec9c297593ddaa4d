"""Every reader as a target: where its inputs come from, what changes them, and what reads them."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fuzz import mutators as change
from fuzz.commands import command_targets
from fuzz.fleets import fleet_targets
from fuzz.logs import log_targets
from fuzz.states import state_targets
from fuzz.studio_files import studio_targets
from steelyard.check import check_log
from steelyard.compare.monte_carlo import _Records
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.recursion.state import read_state, write_state
from steelyard.estimation.sequential.read_plan import read_plan
from steelyard.estimation.simulation_error.control_loop import read_control_loop
from steelyard.excitation.excite import excite
from steelyard.excitation.motion_design import design_motions, read_design
from steelyard.excitation.search import Search, SearchSettings
from steelyard.export.sidecar import load_model, model_to_sidecar, sidecar_path
from steelyard.export.urdf import model_to_urdf
from steelyard.friction.compensation import read_friction
from steelyard.ground.schema import build
from steelyard.ground.untrusted_files import read_json
from steelyard.local.regions import read_regions
from steelyard.local.run_folders import RegionMotions, load_bank, read_motions, save_bank
from steelyard.papers.paper import Item
from steelyard.parameters.terms import terms
from steelyard.regression.inspection import inspect_robot
from steelyard.robot.library import builtin
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import load_log, read_log
from steelyard.simulation.torque_signal import read_torque_signal

ROBOT = "szabo3r"


@dataclass(frozen=True)
class Reader:
    """A target: seeds by name, the mutator for them, and what reads a file that holds an input."""

    name: str
    suffix: str
    seeds: tuple[bytes, ...]
    mutate: change.Mutator
    read: Callable[[Path], Any]


@cache
def arm() -> Robot:
    return builtin(ROBOT)


def _log(rows: int = 40) -> Log:
    t = np.arange(rows) * 0.01
    rng = np.random.default_rng(0)
    q = np.sin(np.outer(t, [1.0, 2.0, 3.0])) + 1e-4 * rng.normal(size=(rows, 3))
    return Log(arm().joint_names, t, q, np.gradient(q, 0.01, axis=0), tau=rng.normal(size=(rows, 3)))


def _saved(folder: Path, name: str) -> bytes:
    path = folder / name
    _log().save(path)
    return path.read_bytes()


URDF = b"""<robot name="a"><link name="w"/><link name="x"><inertial><origin xyz="0.1 0 0" rpy="0 0 1"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><box size="1 1 1"/>
</geometry></collision></link><link name="y"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link><link name="z"/><link name="tool"/>
<joint name="j1" type="revolute"><parent link="w"/><child link="x"/><origin xyz="0 0 0.3" rpy="0 0.5 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="10" velocity="2"/>
<dynamics damping="0.1" friction="0.2"/></joint>
<joint name="j2" type="prismatic"><parent link="x"/><child link="y"/><axis xyz="1 0 0"/></joint>
<joint name="j3" type="continuous"><parent link="y"/><child link="z"/>
<mimic joint="j1" multiplier="2" offset="0.1"/></joint>
<joint name="f" type="fixed"><parent link="z"/><child link="tool"/><origin xyz="0 0 0.1"/></joint></robot>"""
MJCF = b"""<mujoco model="m"><compiler angle="radian" eulerseq="XYZ" autolimits="true"/><option gravity="0 0 -9.8"/>
<default><default class="a"><joint damping="1" armature="0.1"/><geom density="500"/></default></default><worldbody>
<body name="b1" pos="0 0 0.1" euler="0 0 0.3" childclass="a">
<joint name="j1" axis="0 0 1" range="-2 2" frictionloss="0.3"/><geom type="box" size="0.1 0.1 0.2"/>
<body name="b2" pos="0 0 0.4" quat="1 0 0 0"><joint name="j2" axis="0 1 0"/>
<inertial pos="0 0 0.1" mass="2" diaginertia="1 1 1"/><geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.05"/>
<frame pos="0.1 0 0"><body name="b3" zaxis="0 1 0"><joint name="j3" type="slide" axis="1 0 0" range="0 1"/>
<geom type="sphere" size="0.1" mass="1"/><site name="s"/></body></frame></body></body></worldbody>
<equality><joint joint1="j3" joint2="j2" polycoef="0 1 0 0 0"/></equality></mujoco>"""
DH = b"""convention: standard
name: arm
units: deg
gravity: [0, 0, -9.81]
lengths: {l1: 0.3, l2: "l1*2"}
constants: {h: pi/4}
base: {rpy: [0, 0, 90], xyz: [0, 0, 0.1]}
rows:
 - joint: a
   dh: [q, l1, 0, 90]
   limits: [-90, 90]
   link: {name: one, mass: 2, com: [0, 0, 0.1], inertia_com: {xx: 1, yy: 1, zz: 1}}
 - {joint: b, theta: -q + h, d: 0, a: l2, alpha: 0, limits: {lower: -10, upper: 10, velocity: 3}}
 - [0, q, 0.1, 0]
transmission: {motors: [m1, m2, m3], motor_from_joint: [[1, 0, 0], [1, 1, 0], [0, 0, 1]], ratios: [100, 50, 2]}
terms:
 - {kind: viscous, values: [1, 2, 3]}
 - {kind: coulomb, on: drive, values: [1, 2, 3], options: {smooth: 0.1}}
torque_used: [a, b]
"""
DH_TOML = b"""convention = "modified"
rows = [["q1", 0, 0.1, 0.2], {joint = "b", theta = "-q + pi/2", d = 0, a = 0.3, alpha = 0}]
gravity = [0, 0, -9.81]
[lengths]
l1 = 0.5
"""
MAPPING = b"""joints = ["q1", "q2", "q3"]
position = "q{}"
velocity = ["dq1", "dq2", "dq3"]
torque = "tau{}"
gear_ratio = [1, 2, 3]
side = {position = "joint", torque = "motor"}
sign = {torque = [1, -1, 1]}
offset = [0, "pi/2", 0]
gravity = [0, 0, -9.81]
torque_used = ["q1", "q2"]
torque_scale = [1, 1, 2]
coupling = [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
window = {log = [2, 39]}
prefix = ["robot/"]
nan_rows = "drop"
motors = ["m1", "m2", "m3"]
coupling_inverse = [[1, 0, 0], [0, 1, 0], [0, -1, 1]]
[time]
column = "t"
gap = 0.1
[units]
time = "s"
position = ["rad", "rad", "rad"]
"""
REGIONS = b"""units: deg
regions:
  front: {lower: [0.2, -0.1, 0.1], upper: [0.6, 0.2, 0.5], spread: 0.4}
  side: {joints: {q1: [-20, 30], q2: [0, 10]}}
"""
LOOP = b"""kind: pid
kp: [100, 100, 50]
kd: 3
ki: 1
limit: [10, 10, 10]
lag: 0.001
rate: 1000
reference: {file: log.csv, follows: [position, velocity]}
"""
WAVES = b"""duration: 2
limits: [20, 10, 10]
draw: run
seed: 3
waves:
 - {joint: q1, amplitude: 2, rate: 2.0, phase: [0, 2*pi]}
 - {joint: q2, amplitude: 8, rate: 3.0, other_rate: 0.5, decay: 0.3}
"""
PLAN = b"""terms: nominal
known: {Iyy1: [1, 0.1]}
scheme: dynamic
estimator: wls
signals: filtered
movements:
 - {name: one, logs: [log.csv], moves: [q1, q2], finds: [Iyy1], equations: [q1], known: [], neglects: rest}
 - {name: two, logs: log.csv, moves: [q3], finds: {A: {my3: 1}, B: mx3}, neglects: [m3]}
"""


def make_readers(folder: Path) -> Iterator[Reader]:
    """All readers; `folder` is for the files that an input stands beside."""
    robot = arm()
    yield Reader("urdf", ".urdf", (URDF,), change.change_xml, _robot)
    yield Reader("mjcf", ".xml", (MJCF, URDF), change.change_xml, _robot)
    library = Path(sys.modules["steelyard.robot.library"].__file__ or "").parent
    tables = sorted((path.read_bytes() for path in library.glob("*.yaml")), key=len)[:3]  # PyYAML takes its time
    yield Reader("dh-yaml", ".yaml", (DH, *tables), change.change_yaml, _robot)
    yield Reader("dh-toml", ".toml", (DH_TOML,), change.change_text, _robot)
    yield Reader("inspect", ".xml", (URDF, MJCF), change.change_xml, lambda p: inspect_robot(load_robot(p)).to_json())
    table = _saved(folder, "log.csv")
    yield Reader("check", ".csv", (table,), change.change_csv, lambda p: check_log(robot, read_log(p, robot)).to_json())
    yield Reader("mapping", ".toml", (MAPPING,), change.change_text, lambda p: read_log(folder / "log.csv", robot, p))
    named = b"time;shoulder\tx\n".replace(b"\t", b";") + b"0;1\n1;2\n"
    yield Reader("csv", ".csv", (table, table[:400], named), change.change_csv, lambda p: _either(p, robot))
    archive = _saved(folder, "log.npz")
    yield Reader("npz", ".npz", (archive, _fortran()), change.change_npz, lambda p: _either(p, robot))
    yield Reader("parquet", ".parquet", (_parquet(),), change.change_parquet, lambda p: read_log(p, robot))
    yield from (Reader(*target) for target in log_targets(folder, robot, _log(), table))
    yield Reader("regions", ".yaml", (REGIONS,), change.change_yaml, lambda p: read_regions(p, robot))
    yield Reader(
        "control-loop", ".yaml", (LOOP,), change.change_yaml, lambda p: read_control_loop(_beside(p, folder), robot)
    )
    yield Reader("torque-signal", ".yaml", (WAVES,), change.change_yaml, lambda p: read_torque_signal(p, robot))
    yield Reader("plan", ".yaml", (PLAN,), change.change_yaml, lambda p: read_plan(_beside(p, folder), robot))
    yield from (Reader(*target) for target in fleet_targets(folder))
    yield from (Reader(*target) for target in command_targets(folder))
    yield from _documents(folder, robot)
    yield from (Reader(*target) for target in studio_targets(folder / "studio"))
    yield from (Reader(*target) for target in state_targets(folder, robot))


def _robot(path: Path) -> Any:
    return load_robot(path).fingerprint


def _either(path: Path, robot: Robot) -> None:
    """As a log of a robot, and as one that was saved."""
    with suppress(SteelyardError):
        read_log(path, robot)
    load_log(path)


def _beside(path: Path, folder: Path) -> Path:
    target = folder / f"loop{path.suffix}"
    shutil.copyfile(path, target)
    return target


def _fortran() -> bytes:
    log, out = _log(), io.BytesIO()
    np.savez_compressed(out, t=(log.t * 1e9).astype(np.int64), q=np.asfortranarray(log.q), tau=log.tau.astype("f4"))
    return out.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    log, out = _log(), io.BytesIO()
    columns = {"t": log.t, **{f"{s}{k + 1}": getattr(log, s)[:, k] for s in ("q", "dq", "tau") for k in range(3)}}
    pq.write_table(pa.table(columns), out, row_group_size=16)
    return out.getvalue()


def _documents(folder: Path, robot: Robot) -> Iterator[Reader]:
    """What programs of ours wrote and read again."""
    bound = terms(robot, "viscous", "coulomb")
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, np.ones(len(bound))]))
    description = folder / "arm.urdf"
    model_to_urdf(model, description)
    model_to_sidecar(model, sidecar_path(description))
    side = sidecar_path(description).read_bytes()
    yield Reader("sidecar", ".json", (side,), change.change_json, lambda p: load_model(description, p))
    yield Reader("friction-run", ".json", (json.dumps(_FRICTION).encode(),), change.change_json, read_friction)

    quick = {"limits": {"q": 1.0, "dq": 1.0}, "harmonics": 2, "duration": 4.0, "rate": 20.0}
    settings = SearchSettings(2, (1,), (4.0, 8.0), 2, 2)
    kept = folder / "checkpoint.json"
    hunts: list[Search] = []
    run = Search.run
    Search.run = lambda self: (hunts.append(self), run(self))[1]  # type: ignore[method-assign]
    excite(robot, search=settings, checkpoint=kept, **quick)  # type: ignore[arg-type]
    Search.run = run  # type: ignore[method-assign]
    yield Reader("checkpoint", ".json", (kept.read_bytes(),), change.change_json, lambda p: _resumed(hunts[0], p))
    yield _evolution(folder, robot)
    design_motions(robot, search=settings, **quick).save(folder / "design", report=False)
    yield from _in_folder("design", folder / "design", "trajectory.json", lambda f: read_design(f, robot))
    yield from _in_folder("design-result", folder / "design", "result.json", lambda f: read_design(f, robot))
    yield from _banks(folder, robot, model)
    yield Reader("records", ".jsonl", _runs(folder), change.change_text, lambda p: _Records(p, {"a": 1}).load())
    yield Reader("unfinished-item", ".json", (json.dumps(_ITEM).encode(),), change.change_json, _item)
    owner = dict.fromkeys(("robot", "parameters", "scheme", "forgetting", "settings"), "x")
    write_state(folder / "state.npz", owner, {"a": np.eye(3), "b": np.arange(4.0)})
    state = (folder / "state.npz").read_bytes()
    yield Reader("recursive-state", ".npz", (state,), change.change_npz, lambda p: read_state(p, owner))


def _runs(folder: Path) -> tuple[bytes, ...]:
    records = _Records(folder / "runs.jsonl", {"a": 1})
    lines = [json.dumps(x) for x in (records._header, _RUN, _RUN)]
    return ("\n".join(lines).encode() + b"\n",)


def _item(path: Path) -> Item:
    return build(Item, read_json(path, SteelyardError, "run it again", exact=True))


def _resumed(hunt: Search, path: Path) -> None:
    hunt.checkpoint = path
    hunt._restore()


def _evolution(folder: Path, robot: Robot) -> Reader:
    """The checkpoint of a population, read by the run that it belongs to."""
    from steelyard.excitation.evolution import Genetic
    from steelyard.excitation.evolution.evolve import _Evolution

    kept = folder / "evolution.json"

    def made(path: Path | None) -> _Evolution:
        return _Evolution(Genetic(6, 3), 4, 1, lambda x: np.sum(x, axis=1), float, checkpoint=path, key="owner")

    def replayed(path: Path) -> None:
        again = made(None)  # who is to write a file tries to; reading it is what is tried here
        again.checkpoint = path
        again._replay()

    made(kept).run()
    return Reader("evolution-checkpoint", ".json", (kept.read_bytes(),), change.change_json, replayed)


def _in_folder(name: str, folder: Path, file: str, read: Callable[[Path], Any]) -> Iterator[Reader]:
    """A reader of a folder, of whose files one is changed."""
    place = folder.with_name(name + "-changed")
    shutil.copytree(folder, place)

    def in_place(path: Path) -> None:
        shutil.copyfile(path, place / file)
        read(place)

    yield Reader(name, Path(file).suffix, ((folder / file).read_bytes(),), change.change_json, in_place)


def _banks(folder: Path, robot: Robot, model: Model) -> Iterator[Reader]:
    from steelyard.identification.identification import IdentificationSettings
    from steelyard.local.bank import Bank, LocalModel
    from steelyard.local.region import CartesianRegion, JointRegion
    from steelyard.regression.base_parameters import base_parameters

    base = base_parameters(robot, model.terms)
    motion = excite(robot, harmonics=2, duration=4.0, rate=20.0, limits={"q": 1.0, "dq": 1.0},
                    search=SearchSettings(1, (1,), (4.0, 8.0), 1, 2)).trajectory  # fmt: skip
    regions = [
        CartesianRegion("A", np.zeros(3), np.ones(3)),
        JointRegion.of(robot, "B", {robot.joint_names[0]: (0.0, 1.0)}),
    ]
    locals_ = tuple(
        LocalModel(
            region=r, model=model, base=base, settings=IdentificationSettings(), motion=motion,
            beta=np.ones(base.rank), covariance=np.eye(base.rank), residual_std=np.ones(robot.dof), cutoff_hz=10.0,
            seconds=4.0, inside=1.0,
        )
        for r in regions
    )  # fmt: skip
    save_bank(Bank(robot, locals_, 0.05), folder / "bank")
    for name, file in (("bank", "result.json"), ("bank-model", "A/model.json"), ("bank-motion", "B/trajectory.json")):
        yield from _in_folder(name, folder / "bank", file, lambda f: load_bank(f, robot))
    RegionMotions(robot, regions, dict.fromkeys("AB", motion)).save(folder / "motions")
    yield from _in_folder("motions", folder / "motions", "result.json", lambda f: read_motions(f, robot))


_FRICTION: dict[str, Any] = {
    "joints": [
        {"joint": "q1", "law": "tustin", "coefficients": {}, "covariance": [], "shape": 0.1, "fastest": 2.0,
         "load_gain": 0.1, "temperature": {"slopes": {}, "reference": 20.0, "range": [10.0, 40.0]}},
    ]
}  # fmt: skip
_RUN = {"cell": "a/b", "estimator": "wls", "result": "found", "seconds": 1.0, "position_error": None, "possible": True}
_ITEM = {
    "text": "t", "title": "x", "differences": ["d"],
    "tables": [{"columns": [{"name": "a", "unit": "m", "digits": 3, "places": None}], "title": "",
                "rows": [["x", 1.5, None, True]]}],
    "figures": [{"title": "f", "caption": "", "panels": [
        {"title": "p", "x": "t", "y": "", "logarithmic": False, "range": [0, 1],
         "lines": [{"name": "l", "x": [0.0, 1.0], "y": [None, 2.0], "dashed": True}]}]}],
    "statements": [{"claim": "c", "kind": "asserted", "found": "f", "holds": True}],
}  # fmt: skip


def _fill_friction() -> None:
    """The symbols of the law, which knows them itself."""
    from steelyard.friction.laws import law_named

    entry = _FRICTION["joints"][0]
    symbols = law_named(entry["law"]).symbols
    entry["coefficients"] = entry["temperature"]["slopes"] = dict.fromkeys(symbols, 1.0)
    entry["covariance"] = np.eye(len(symbols)).tolist()


_fill_friction()
yaml.SafeDumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]
