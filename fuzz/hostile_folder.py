"""Makes folders as a stranger could prepare them: every file that the studio, `fleet` or `watch` writes, hostile.

The content comes from the schemas: the fields of `Project` by their types, and the documents that the programs write.
Paths in it lead to a bait outside the folder, words are options and scripts, process numbers are those of this process.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import mutators as change
from steelyard.ground.atomic_files import _host
from steelyard.project import ROLES, Project

# What a page must never hold unescaped, and what lies in the bait.
SCRIPT, SECRET = "<img src=x onerror=alert(1)>", "SECRET-OF-THE-BAIT"
URDF = b"""<robot name="a"><link name="w"/><link name="x"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry><mesh filename="MESH"/>
</geometry></visual></link><joint name="q1" type="revolute"><parent link="w"/><child link="x"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="10" velocity="2"/></joint></robot>"""
# Commands a stranger would like to be run; BAIT is the folder outside.
COMMANDS = (
    ["export", "runs/a", "--to", "c", "-o", "../outside/made"], ["check", "-o", "runs/check-9"],
    ["fleet", "fleet.toml", "--scheduler", "tcp://127.0.0.1:9", "-o", "runs/f"], ["identify", "-o", "BAIT/made"],
    ["predict", "runs/a", "BAIT/log.csv", "-o", "runs/p"], ["watch", "runs/a", "tcp-to:127.0.0.1:9", "--state", "BAIT"],
    ["-m", "pyramid", "logs/a.csv", "BAIT/made"], ["excite", "--checkpoint", "BAIT/made.json", "-o", "runs/e"],
    ["reproduce", "all", "-o", "BAIT/made"], ["studio", "."], ["excite", "-o", "runs/e"], [], ["-c", "import os"],
)  # fmt: skip

# Project files without any fault, so that pages go further.
_GOOD_PROJECTS = (
    b'robot = "robot/a.urdf"\nruns = "runs"\n[logs]\nidentify = ["logs/a.csv"]\nvalidate = ["logs/*.csv"]\n',
    b'robot = "szabo3r"\nmodel = "runs/a"\nmapping = "mapping.toml"\n[logs]\nidentify = "logs/a.csv"\n',
)


class HostileFolder:
    """A folder, and a bait beside it that nothing may touch.

    Args:
        base: an empty folder; `victim`, `outside` and `state` are made in it.
    """

    def __init__(self, base: Path) -> None:
        self.folder, self.bait, self.state = base / "victim", base / "outside", base / "state"
        self.bait.mkdir()
        self.state.mkdir(mode=0o700)
        (self.bait / "log.csv").write_text(f"t,{SECRET}\n0,0\n1,1\n")
        (self.bait / "manifest.json").write_text(json.dumps({"format": "steelyard-run-1", "command": SECRET}))
        (self.bait / "result.json").write_text(json.dumps({"robot": SECRET, "verdict": {"sentence": SECRET}}))
        (self.bait / "a.urdf").write_bytes(URDF.replace(b'"a"', f'"{SECRET}"'.encode()))
        (self.bait / "steelyard.toml").write_text(f'robot = "{SECRET}"\n')

    def make(self, rng: random.Random) -> None:
        """Fill the folder anew.

        Args:
            rng: chooses the content; the same numbers give the same folder.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(mode=0o700)
        self.folder.mkdir()
        for name, content in _files().items():
            if rng.random() < 0.55:
                self._put(rng, self.folder / name, content(rng))
        with suppress(OSError):
            content = project_text(rng) if rng.random() < 0.6 else rng.choice(_GOOD_PROJECTS)
            self._put(rng, self.folder / "steelyard.toml", self._text(content))

    def _put(self, rng: random.Random, path: Path, content: bytes) -> None:
        """Write a file, or now and then something else in its place."""
        with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            path.parent.mkdir(parents=True, exist_ok=True)
            match rng.randrange(40):
                case 0:
                    path.symlink_to(
                        self.bait / rng.choice(("log.csv", "manifest.json", "result.json", "made", "a.urdf"))
                    )
                case 1:
                    path.symlink_to(self.bait)
                case 2:
                    os.mkfifo(path)
                case 3:
                    path.mkdir()
                case 4:
                    path.symlink_to(path)  # a link to itself
                case 5:
                    path.symlink_to("/dev/zero")
                case _:
                    path.write_bytes(self._text(content))

    def _text(self, content: bytes) -> bytes:
        return content.replace(b"BAIT", os.fsencode(self.bait)).replace(
            b"/etc/passwd", os.fsencode(self.bait / "log.csv")
        )


def hostile_word(rng: random.Random) -> str:
    """A text that some program might take for a path, an option, a command or a script."""
    return rng.choice((
        SCRIPT, f"runs/{SCRIPT}", "../outside/log.csv", "BAIT/log.csv", "BAIT", "..", "runs/../../outside", "-o",
        "--scheduler", "file://BAIT/log.csv", "http://127.0.0.1:9/x", "s3://bucket/x", "package://outside/log.csv",
        "runs/a", "logs/a.csv", "logs/*.csv", "../*/*.csv", "**/*", "robot/a.urdf", "szabo3r", "$(touch BAIT/made)",
        "x\u0000y", "\ud800", "a" * 300, ".steelyard/jobs", "~", "../outside/a.urdf", "mapping.toml",
        *change.ODD_WORDS,
    ))  # fmt: skip


def hostile_value(rng: random.Random, depth: int = 0) -> Any:
    """A value of any type."""
    kind = rng.randrange(9)
    if kind < 4 or depth > 3:
        return hostile_word(rng)
    if kind == 4:
        return rng.choice((0, 1, -1, os.getpid(), os.getppid(), 2**31, -(2**63), 10**30, 1e308, 0.5, True, None))
    if kind == 5:
        return [hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {hostile_word(rng): hostile_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(change.ODD_VALUES)


def document(template: Any) -> Callable[[random.Random], bytes]:
    """A generator of JSON files like a template: some values are hostile, some keys are missing, some bytes wrong.

    Args:
        template: what the program itself would write.
    """

    def changed(rng: random.Random, value: Any, share: float) -> Any:
        if rng.random() < share:
            return hostile_value(rng)
        if isinstance(value, dict):
            return {k: changed(rng, v, share) for k, v in value.items() if rng.random() > 0.03}
        if isinstance(value, list):
            return [changed(rng, v, share) for v in value[:50]]
        return value

    def made(rng: random.Random) -> bytes:
        value = changed(rng, template, rng.choice((0.0, 0.03, 0.2, 0.6)))
        with suppress(ValueError, UnicodeEncodeError):
            data = json.dumps(value).encode()
            return change.change_json(rng, data) if rng.random() < 0.2 else data
        return rng.randbytes(50)

    return made


def job(rng: random.Random) -> bytes:
    """A job file that asks for a command."""
    words: list[Any] = list(rng.choice(COMMANDS))
    if words and rng.random() < 0.4:
        words[rng.randrange(len(words))] = hostile_value(rng)
    asked = {
        "stage": rng.choice(("identify", "motion", "use", "check", "data")), "title": SCRIPT, "words": words,
        "output": rng.choice(("", "runs/a", "../outside/made")), "limits": {"memory_gb": 1e9, "hours": 1e9},
    }  # fmt: skip
    return document(asked)(rng) if rng.random() < 0.4 else json.dumps(asked).encode()


def project_text(rng: random.Random) -> bytes:
    """A project file from the fields of `Project`: hostile words for texts, and what its types do not allow."""
    lines, tables = [], []
    for one in fields(Project):
        if one.name == "file" or rng.random() < 0.4:
            continue
        if one.name == "logs":
            tables.append("[logs]")
            tables += [
                f"{role} = {_toml([hostile_word(rng) for _ in range(rng.randrange(3))])}"
                for role in rng.sample(ROLES, rng.randrange(len(ROLES)))
            ]
        elif one.name in ("limits", "lock"):
            tables += [f"[{one.name}]", f"q = {_toml(hostile_value(rng))}"]
        else:
            good = {"robot": "robot/a.urdf", "runs": "runs", "mapping": "mapping.toml", "model": "runs/a"}.get(one.name)
            lines.append(f"{one.name} = {_toml(good if good and rng.random() < 0.6 else hostile_value(rng))}")
    text = "\n".join([*lines, *tables])
    data = text.encode("utf-8", "replace")
    return change.change_text(rng, data) if rng.random() < 0.15 else data


def _toml(value: Any) -> str:
    """A value as TOML writes it; what TOML does not have becomes text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value) if isinstance(value, (bool, int, float, str)) else '""'


def _robot(rng: random.Random) -> bytes:
    """A robot that names a mesh elsewhere."""
    made = URDF.replace(b"MESH", hostile_word(rng).encode("utf-8", "replace").replace(b'"', b""))
    return change.change_xml(rng, made) if rng.random() < 0.3 else made


def _npz() -> bytes:
    out = io.BytesIO()
    np.savez(out, counts=np.array('{"samples": 1}'), t=np.arange(3.0), source=np.array("tcp:5005"))
    return out.getvalue()


@cache
def _files() -> dict[str, Callable[[random.Random], bytes]]:
    """Every file, by its name in the folder, and what makes its content."""
    aside = f".run.steelyard-new-{_host()}-999999-1-abcd"
    old = f".kept.steelyard-old-{_host()}-999999-1-abcd"
    manifest = {
        "format": "steelyard-run-1", "command": "steelyard identify robot/a.urdf logs/a.csv", "command_in": "..",
        "growing": [], "files": {"result.json": "0" * 64, "../../outside/log.csv": "0" * 64},
    }  # fmt: skip
    score = {"log": "b", "joints": [{"joint": "q1", "nrmse_percent": 3.0}]}
    identified = {
        "format": "steelyard-identification-1", "robot": {"name": "a", "joints": ["q1"]}, "validation": [score],
        "verdict": {"grade": "good", "sentence": "The model is good.", "reasons": ["x"]}, "identification": [score],
        "nominal": [], "base_parameters": {"count": 1, "list": []}, "estimation": {}, "structure": None,
        "settings": {"estimator": "wls", "cutoff_hz": 20.0},
    }  # fmt: skip
    entry = {"severity": "problem", "finding": "sign", "joint": "q1", "words": "x", "fix": {"sign": [1]}}
    checked = {"format": "steelyard-check-1", "grade": "good", "entries": [entry], "excitation": {}, "logs": []}
    designed = {
        "format": "steelyard-excitation-1", "settings": {"source": "robot/a.urdf"}, "criterion": {"value": 3.0},
        "verdict": {"grade": "good", "sentence": "x"}, "plans": [{"coefficients": [[1.0]]}], "notes": ["x"],
        "random_motion": {}, "fingerprint": "x",
    }  # fmt: skip
    errors = {"nominal": {"position": {"mean": 1.0, "p95": 1.0, "largest": 2.0}}}
    calibrated = {
        "robot": "a", "verdict": {"kind": "good", "headline": "x", "points": ["x"]}, "errors": {"fit": errors},
        "poses": {"fit": 9}, "effects": [{"name": "offsets"}], "measurement": "points", "volume": {},
    }  # fmt: skip
    parameter = {"name": "armature", "unit": "kg m²", "value": 1.0, "low": 0.0, "high": 2.0, "estimated": True}
    driven = {
        "drive": {"name": "a"}, "verdict": {"grade": "good", "sentence": "x", "reasons": ["x"]},
        "runs": [{"error": 0.1, "goal_error": 0.2}], "parameters": [{**parameter, "about": "x"}],
        "structures": [], "inseparable": [{"reason": "x", "experiment": "x", "parameters": ["x"]}],
    }  # fmt: skip
    poses = b"q1,p1x_m,p1y_m,p1z_m\n" + b"".join(b"%g,1,2,3\n" % (0.1 * k) for k in range(9))
    goals = b"log,t,goal,position\n" + b"".join(b"1,%g,0,0\n" % (0.01 * k) for k in range(30))
    bag = b"rosbag2_bagfile_information:\n  relative_file_paths:\n  - ../../outside/log.db3\n"
    csv = b"t,q1,dq1,tau1\n" + b"".join(b"%g,%g,0,1\n" % (0.01 * k, 0.1 * k) for k in range(30))
    page = f"<!doctype html><script>fetch('http://127.0.0.1:9')</script>{SCRIPT}".encode()

    def raw(data: bytes) -> Callable[[random.Random], bytes]:
        return lambda rng: change.change_bytes(rng, data) if rng.random() < 0.2 else data

    def run(command: str, result: Any) -> dict[str, Callable[[random.Random], bytes]]:
        return {
            "manifest.json": document({**manifest, "command": command}), "result.json": document(result),
            "report.html": raw(page), "a.steelyard.json": document({"format": "steelyard-sidecar-1", "terms": []}),
        }  # fmt: skip

    own: dict[str, Callable[[random.Random], bytes]] = {
        "key.json": document({"token": ""}), "lock": raw(b""), "touched": raw(b""), "open.html": raw(page),
        "robot.json": document({"key": "x", "seen": {"name": SCRIPT, "words": "", "view": SCRIPT, "tables": SCRIPT}}),
        "fixes.json": document([{"before": "", "after": "mapping.toml", "what": [SCRIPT], "by_hand": []}]),
        "identify.json": document({"judge": "logs", "judge_by": ["../outside/log.csv"], "estimator": "wls"}),
        "motion.json": document({"duration": "10", "optimiser": "ga"}), "project.toml": project_text,
        "basis/runs~a.json": document({"keys": {}, "files": {}}), "pyramids/x": raw(b"\x00" * 64),
        "uploads/0123456789abcdef": raw(b"cut"), "trash/20260101-000000/.from": raw(b"../outside/log.csv"),
        "trash/20260101-000000/run/manifest.json": document(manifest), "trash/2/.from": raw(b"runs/b"),
        "trash/2/b": raw(b"x"), "motion/0a0b0c0d.json": document({"generation": 3}), "new/1/job.json": job,
    }  # fmt: skip
    for name in ("1", "1700000000000-abcdef"):
        own |= {
            f"jobs/{name}/job.json": job, f"jobs/{name}/lock": raw(b""), f"jobs/{name}/said.txt": raw(SCRIPT.encode()),
            f"jobs/{name}/events.jsonl": document({"stage": SCRIPT, "fraction": 0.5, "message": SCRIPT}),
        }  # fmt: skip
    own["jobs/2/job.json"] = job
    own["jobs/2/begun.json"] = document({"pid": os.getpid(), "time": 0.0})
    own["jobs/3/ended.json"] = document({"code": 0, "delivered": True})
    out = {f".steelyard/{name}": content for name, content in own.items()}
    for name, command, result in (
        ("runs/a", "steelyard identify robot/a.urdf logs/a.csv -o runs/a", identified),
        ("runs/b", "steelyard check -o runs/b", checked), ("runs/c", "steelyard excite -o runs/c", designed),
        ("runs/d", "steelyard rehearse robot/a.urdf runs/c", {"trials": [], "passed": True, "motion": "runs/c"}),
        ("runs/e", f"steelyard fleet fleet.toml -o {SCRIPT}", {"robots": [], "logs": []}),
        ("runs/f", "steelyard calibrate robot/a.urdf poses/a.csv", calibrated),
        ("runs/g", "steelyard actuator drives/a.csv --runs drives/runs.csv", driven),
        (aside, "steelyard check", checked), (old, "steelyard check", checked), (f"runs/{aside}", "", checked),
    ):  # fmt: skip
        out |= {f"{name}/{file}": content for file, content in run(command, result).items()}
    return out | {
        "robot/a.urdf": _robot, "logs/a.csv": lambda rng: change.change_csv(rng, csv) if rng.random() < 0.3 else csv,
        "poses/a.csv": raw(poses), "drives/a.csv": raw(goals), "drives/b/c.csv": raw(goals),
        "logs/bag/metadata.yaml": raw(bag),
        "drives/runs.csv": raw(b"log,mass,length,kp\n1,0.5,0.1,4\n"), "runs/f/a_calibrated.urdf": _robot,
        "logs/b.npz": raw(_npz()), "mapping.toml": raw(b'time = "t"\n'),
        "fleet.toml": raw(b'[robots.a]\nmodel = "BAIT/a.urdf"\nlogs = ["BAIT/*.csv"]\n'),
        "runs/e/settings/a.json": document({"terms": [], "cutoff": 1.0}), "runs/e/robots.parquet": raw(b"PAR1\x00PAR1"),
        "store/identities/ab.json": document({"BAIT/log.csv": {"size": 1, "key": "0" * 64}}),
        "store/identities/abcdef.jsonl": document(["BAIT/log.csv", {"key": "0" * 64}]),
        "store/ab/abcd": raw(b"key\nbody"),
        "state/state.npz": raw(_npz()), "state/state-before.npz": raw(_npz()), "state/.steelyard-lock": raw(b""),
        "state/thresholds.json": document({"joints": {"q1": 1.0}}), "runs/w/history.csv": raw(csv),
    }  # fmt: skip
