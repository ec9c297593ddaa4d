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
    """Options of `steelyard init`."""

    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="Robot description file, or built-in robot.")] = ""
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG", help="Logs to identify from; without --validate the last of several is for validation."
        ),
    ] = None
    validate: opt.Validate = None
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    term_names: opt.TermNames = ""
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing project file.")] = False


@command(
    "init",
    epilog="Example: steelyard init arm.urdf a.csv b.csv --validate c.csv --map columns.toml",
    uses_project=False,
)
@opt.with_options(InitOptions)
def init(o: InitOptions) -> None:
    """Write a project file (steelyard.toml) with defaults for all commands in this folder and below."""
    validation = list(o.validate or ())
    if o.logs and len(o.logs) > 1 and not validation:  # scores on the fitted log are too good
        validation = o.logs[-1:]
        o = replace(o, logs=o.logs[:-1], validate=validation)
    if not o.overwrite:
        _refuse_existing()
        check_file(PROJECT_FILE)
    for path in (*(o.logs or ()), *validation, *([o.mapping] if o.mapping else ())):
        if not os.path.exists(path):
            raise SteelyardError(f"{path}: there is no such file; check the path.")
    if o.robot:
        o.robot_options.robot(o.robot)
    write_whole(PROJECT_FILE, _text(o), new=not o.overwrite)
    project = Project.load(PROJECT_FILE)
    next_one = "steelyard check" if project.log_paths() else "steelyard excite" if project.robot else "an editor"
    role = f" Validation: {', '.join(validation)}." if validation else ""
    typer.echo(f"Written to {PROJECT_FILE}.{role} Next: {next_one}.")


def _refuse_existing() -> None:
    if os.path.lexists(PROJECT_FILE):
        raise SteelyardError(f"{PROJECT_FILE} exists; change it with an editor, or give --overwrite to replace it.")


def _text(o: InitOptions) -> str:
    """Text of the file: given options as keys, the other keys as comments with examples."""
    options = o.robot_options
    lock = dict(text.rpartition("=")[::2] for text in options.lock or ())
    # Key, value, example, meaning; tables in brackets.
    rows: list[tuple[str, str, str, str]] = [
        ("robot", _quoted(_slashes(o.robot)), '"arm.urdf"', "description file, or built-in robot"),
        ("mapping", _quoted(_slashes(o.mapping)), '"columns.toml"', "meaning of the logs' columns"),
        ("joints", _list(opt.words(options.joints)), '["q1", "q2"]', "moving joints; others are locked"),
        ("gravity", f"[{options.gravity}]" if options.gravity else "", "[0.0, 0.0, -9.81]", "in the base frame, m/s²"),
        ("snap", "" if options.snap is None else repr(options.snap), "1e-4", "make nearly right angles exact"),
        ("packages", "", '["meshes"]', "folders for package://"),
        ("terms", _list(opt.words(o.term_names)), '["viscous", "coulomb"]', "joint terms; default: found by search"),
        ("controller", "", '"controller.yaml"', "controller of the robot"),
        ("model", "", '"found"', "run of identify; default: that in runs"),
        ("motion", "", '"motion"', "run of excite; default: that in runs"),
        ("runs", '"runs"', "", "folder for results, by command"),
        ("[lock]", "" if not lock else "table", "", "locked joints, rad or m"),
        *((_quoted(joint.strip()), value.strip(), "", "") for joint, value in lock.items()),
        *([] if lock else [("gripper", "", "0.02", "")]),
        ("[limits]", "", "", 'for designed motions: a number, one per joint, or "none"'),
        ("q", "", "[[-1.5, 1.5], [-1.0, 2.0]]", "pairs low, high; rad or m"),
        ("dq", "", "1.5", "also ddq, jerk, tau, power"),
        ("[logs]", "table", "", "paths or patterns, by purpose"),
        ("identify", _list(list(map(_slashes, o.logs or ()))), '["logs/a*.csv"]', "for the fit"),
        ("validate", _list(list(map(_slashes, o.validate or ()))), '["logs/judge.csv"]', "for validation"),
        ("friction", "", '["sweeps/*.csv"]', "constant speeds"),
        ("payload", "", '{ gripper = ["loaded.csv"] }', "with a payload"),
        ("bare", "", '["empty.csv"]', "without payload"),
        ("healthy", "", '["logs/first*.csv"]', "reference for later logs"),
    ]
    return _HEAD + "".join(_row(*row) for row in rows)


_HEAD = """# Defaults of `steelyard` in this folder and below. Paths are relative to it; typed options override them.
"""


def _row(key: str, value: str, example: str, why: str) -> str:
    """A line of the file: a key, or a comment with an example."""
    line = (
        f"{'' if value else '# '}{key}"
        if key.startswith("[")
        else f"{key} = {value}"
        if value
        else f"# {key} = {example}"
    )
    space = "\n" if key.startswith("[") else ""
    return f"{space}{line.ljust(42)}  # {why}\n" if why else f"{line}\n"


def _slashes(path: str) -> str:
    """Write a path with forward slashes, which work on every system."""
    return Path(path).as_posix() if path else ""


def _quoted(text: str) -> str:
    """Quote a text for TOML; "" stays empty."""
    return json.dumps(text) if text else ""


def _list(texts: list[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]" if texts else ""
