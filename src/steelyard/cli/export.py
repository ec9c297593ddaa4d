"""`steelyard export`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class ExportOptions:
    """What may be typed."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A run of identify, an exported URDF, or a robot with inertias."),
        opt.FromProject("model"),
    ]
    to: Annotated[str, typer.Option(metavar="F,…", help="Some of {model_formats:,}; default {formats:,}.")] = ""
    c: Annotated[bool, typer.Option("--c", help="C99 and its header: the same as --to c.")] = False
    observer: Annotated[bool, typer.Option("--observer", help="C99 that tells the external torque on every joint.")] = (
        False
    )
    name: Annotated[str, typer.Option(metavar="NAME", help="Of files and C functions; default: the robot's.")] = ""
    description: Annotated[
        str, typer.Option(metavar="F", help="The robot's own URDF or MJCF, whose meshes the URDF keeps.")
    ] = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("export", epilog="Example: steelyard export run --to c --name arm -o controller")
@opt.taking(ExportOptions)
def export(o: ExportOptions) -> None:
    """Write a model as files that other programs load: URDF, MJCF, SDF, xacro, USD, C, FMU, a table."""
    from steelyard.export.sidecar import load_format_models
    from steelyard.use.exported import FORMATS, Exported

    def made() -> Exported:
        model = o.described.model(o.model)
        wanted = [*opt.words(o.to), *(["c"] if o.c else []), *(["observer"] if o.observer else [])]
        formats = tuple(dict.fromkeys(wanted)) if wanted or o.to else FORMATS
        fitted = load_format_models(o.model) if opt.is_run(o.model) else {}
        return Exported(model, formats, o.name, opt.description(o.description), fitted)

    o.end.deliver(made)
