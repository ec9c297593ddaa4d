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
        str, typer.Argument(metavar="MODEL", help="A run of identify, an exported URDF, or a robot with inertias.")
    ]
    to: Annotated[str, typer.Option(metavar="F,…", help="{formats:,}: what to write.")] = ",".join(
        ("urdf", "mjcf", "c", "csv")
    )
    name: Annotated[str, typer.Option(metavar="NAME", help="Of files and C functions; default: the robot's.")] = ""
    description: Annotated[
        str, typer.Option(metavar="F", help="The robot's own URDF or MJCF, whose meshes the URDF keeps.")
    ] = ""
    joints: opt.Joints = ""
    gravity: opt.Gravity = ""
    end: opt.End = opt.END


@command("export", epilog="Example: steelyard export run --to c --name arm -o controller")
@opt.taking(ExportOptions)
def export(o: ExportOptions) -> None:
    """Write a model as files that other programs load: URDF with a sidecar, MuJoCo's MJCF, C code, a table."""
    from steelyard.use.exported import Exported

    def made() -> Exported:
        model = opt.model_from(o.model, o.joints, o.gravity, o.end.snap)
        return Exported(model, opt.words(o.to), o.name, opt.description(o.description) if o.description else None)

    o.end.deliver(made)
