"""`steelyard predict`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command

if TYPE_CHECKING:
    from steelyard.use.predict import Predictions


@dataclass(frozen=True)
class PredictOptions:
    """What may be typed."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A run of identify, an exported URDF, a robot, or a bank of local."),
        opt.FromProject("model"),
    ]
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", help="Logs with the motions."),
        opt.FromProject("logs.validate", "logs.identify"),
    ]
    robot: Annotated[str, typer.Option(metavar="ROBOT", help="The robot of a bank; other models have their own.")] = ""
    mapping: opt.MapFile = ""
    cutoff: Annotated[
        float | None, typer.Option(metavar="HZ", help="Torques are compared below this; default by a rule.")
    ] = None
    delay: Annotated[
        float | None, typer.Option(metavar="S", help="How far torques lag behind positions, s; default: as in the run.")
    ] = None
    to: Annotated[str, typer.Option(metavar="F,…", help="What to write for every log: {prediction_formats:,}.")] = "csv"
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("predict", epilog="Example: steelyard predict run tomorrow.parquet --map columns.toml -o torques")
@opt.taking(PredictOptions)
def predict(o: PredictOptions) -> None:
    """Predict the torques of logged motions by a model, or by a bank of local ones, with 95 % bands."""
    from steelyard.use._band_of import torque_band_of, torque_delay_of
    from steelyard.use.predict import predict as predicted

    options: dict[str, Any] = {"names": _names(o.logs), "cutoff_hz": o.cutoff, "formats": opt.words(o.to)}

    def made() -> Predictions:
        if o.robot:
            from steelyard.local.files import load_bank

            bank = load_bank(o.model, o.described.robot(o.robot))
            logs = opt.logs_from(o.logs, bank.robot, o.mapping)
            return predicted(bank, logs, label="the bank's local models", **options)
        model = o.described.model(o.model)
        logs = opt.logs_from(o.logs, model.robot, o.mapping)
        band = torque_band_of(o.model, model)
        late = torque_delay_of(o.model) if o.delay is None else o.delay
        return predicted(model, logs, label=f"the model of {o.model}", band=band, delay=late, **options)

    o.end.deliver(made)


def _names(paths: list[str]) -> list[str]:
    return [Path(path).stem for path in paths]
