"""`steelyard init`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError
from steelyard.ground.files import check_file, write_whole
from steelyard.project import PROJECT_FILE, Project


@dataclass(frozen=True)
class InitOptions:
    """What may be typed."""

    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="The robot's description, or a built-in robot.")] = ""
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG", help="Logs to identify from; of several the last one judges, unless --validate names others."
        ),
    ] = None
    validate: opt.Validate = None
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    term_names: opt.TermNames = ""
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the project file that is there.")] = False


@command(
    "init",
    epilog="Example: steelyard init arm.urdf a.csv b.csv --validate c.csv --map columns.toml",
    asks_project=False,
)
@opt.taking(InitOptions)
def init(o: InitOptions) -> None:
    """Write a project file (steelyard.toml): what every command below its folder is about."""
    judges = list(o.validate or ())
    if o.logs and len(o.logs) > 1 and not judges:  # a model that nothing else judges is flattered by its own log
        judges = o.logs[-1:]
        o = replace(o, logs=o.logs[:-1], validate=judges)
    if not o.overwrite:
        _refuse_existing()
        check_file(PROJECT_FILE)
    for path in (*(o.logs or ()), *judges, *([o.mapping] if o.mapping else ())):
        if not os.path.exists(path):
            raise SteelyardError(f"{path}: there is no such file; check the path.")
    if o.robot:
        o.described.robot(o.robot)
    write_whole(PROJECT_FILE, _text(o), new=not o.overwrite)
    project = Project.load(PROJECT_FILE)
    next_one = "steelyard check" if project.log_paths() else "steelyard excite" if project.robot else "an editor"
    role = f" {', '.join(judges)} will judge." if judges else ""
    typer.echo(f"Written to {PROJECT_FILE}.{role} Next: {next_one}.")


def _refuse_existing() -> None:
    if os.path.lexists(PROJECT_FILE):
        raise SteelyardError(
            f"{PROJECT_FILE} exists; change it with an editor, or give --overwrite to replace it whole."
        )


def _text(o: InitOptions) -> str:
    """The file: what was typed as keys, the others as comments that say what they are for."""
    seen = o.described
    lock = dict(text.rpartition("=")[::2] for text in seen.lock or ())
    # Key, its value, an example of one, and what it is for; tables in brackets.
    rows: list[tuple[str, str, str, str]] = [
        ("robot", _quoted(_slashes(o.robot)), '"arm.urdf"', "a description, or a built-in robot"),
        ("mapping", _quoted(_slashes(o.mapping)), '"columns.toml"', "what the logs' columns mean"),
        ("joints", _list(opt.words(seen.joints)), '["q1", "q2"]', "those that move; others are locked"),
        ("gravity", f"[{seen.gravity}]" if seen.gravity else "", "[0.0, 0.0, -9.81]", "in the base frame, m/s²"),
        ("snap", "" if seen.snap is None else repr(seen.snap), "1e-4", "make nearly right angles exact"),
        ("packages", "", '["meshes"]', "where package:// is found"),
        ("terms", _list(opt.words(o.term_names)), '["viscous", "coulomb"]', "joint terms; default: searched for"),
        ("controller", "", '"controller.yaml"', "what controlled the robot"),
        ("model", "", '"found"', "a run of identify; default: that in runs"),
        ("motion", "", '"motion"', "a run of excite; default: that in runs"),
        ("runs", '"runs"', "", "results are written there, by command"),
        ("[lock]", "" if not lock else "table", "", "joints that are locked, rad or m"),
        *((_quoted(joint.strip()), value.strip(), "", "") for joint, value in lock.items()),
        *([] if lock else [("gripper", "", "0.02", "")]),
        ("[limits]", "", "", "of designed motions: a number, one per joint, or none (in quotes)"),
        ("q", "", "[[-1.5, 1.5], [-1.0, 2.0]]", "pairs low, high; rad or m"),
        ("dq", "", "1.5", "also ddq, jerk, tau, power"),
        ("[logs]", "table", "", "paths or patterns, by what they are for"),
        ("identify", _list(list(map(_slashes, o.logs or ()))), '["logs/a*.csv"]', "fitted to"),
        ("validate", _list(list(map(_slashes, o.validate or ()))), '["logs/judge.csv"]', "judged by"),
        ("friction", "", '["sweeps/*.csv"]', "constant speeds"),
        ("payload", "", '{ gripper = ["loaded.csv"] }', "with a load"),
        ("bare", "", '["empty.csv"]', "without it"),
        ("healthy", "", '["logs/first*.csv"]', "what later logs are compared with"),
    ]
    return _HEAD + "".join(_row(*row) for row in rows)


_HEAD = """# What `steelyard` is about in this folder and below. Paths are relative to it; what is typed wins.
"""


def _row(key: str, value: str, example: str, why: str) -> str:
    """A line of the file: a key, or what could be one."""
    said = (
        f"{'' if value else '# '}{key}"
        if key.startswith("[")
        else f"{key} = {value}"
        if value
        else f"# {key} = {example}"
    )
    space = "\n" if key.startswith("[") else ""
    return f"{space}{said.ljust(42)}  # {why}\n" if why else f"{said}\n"


def _slashes(path: str) -> str:
    """`path` with forward slashes, which every system reads."""
    return Path(path).as_posix() if path else ""


def _quoted(text: str) -> str:
    """`text` as a string of TOML; "" where there is none."""
    return json.dumps(text) if text else ""


def _list(texts: list[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]" if texts else ""
