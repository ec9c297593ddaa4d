"""`steelyard export`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class ExportOptions:
    """Options of `steelyard export`."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Run of identify, exported URDF, or robot with inertias."),
        opt.FromProject("model"),
    ]
    to: Annotated[
        str, typer.Option(metavar="F,…", help="Formats to write: {model_formats:,}; default {formats:,}.")
    ] = ""
    c: Annotated[bool, typer.Option("--c", help="C99 source and header, like --to c.")] = False
    observer: Annotated[bool, typer.Option("--observer", help="C99 observer of the external joint torques.")] = False
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of files and C functions; default: the robot's.")] = ""
    description: Annotated[
        str, typer.Option(metavar="F", help="Original URDF or MJCF of the robot, for its meshes.")
    ] = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("export", epilog="Example: steelyard export run --to c --name arm -o controller")
@opt.with_options(ExportOptions)
def export(o: ExportOptions) -> None:
    """Write a model as files for other programs: URDF, MJCF, SDF, xacro, USD, C, FMU, a table."""
    from steelyard.export.formats import FORMATS, ModelExport
    from steelyard.export.sidecar import load_format_models

    def run() -> ModelExport:
        model = o.robot_options.model(o.model)
        chosen = [*opt.words(o.to), *(["c"] if o.c else []), *(["observer"] if o.observer else [])]
        formats = tuple(dict.fromkeys(chosen)) if chosen or o.to else FORMATS
        fitted = load_format_models(o.model) if opt.is_run(o.model) else {}
        return ModelExport(model, formats, o.name, opt.description(o.description), fitted)

    o.out.deliver(run)
