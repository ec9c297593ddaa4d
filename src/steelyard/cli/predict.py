"""`steelyard predict`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command

if TYPE_CHECKING:
    from steelyard.prediction.predict import Predictions


@dataclass(frozen=True)
class PredictOptions:
    """Options of `steelyard predict`."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Run of identify, exported URDF, robot, or bank of local."),
        opt.FromProject("model"),
    ]
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", help="Logs with the motions."),
        opt.FromProject("logs.validate", "logs.identify"),
    ]
    robot: Annotated[str, typer.Option(metavar="ROBOT", help="Robot of a bank; other models contain theirs.")] = ""
    mapping: opt.MapFile = ""
    cutoff: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="Low-pass cut-off for the comparison of torques; default by a rule."),
    ] = None
    delay: Annotated[
        float | None, typer.Option(metavar="S", help="Delay of torques behind positions, s; default: that of the run.")
    ] = None
    to: Annotated[str, typer.Option(metavar="F,…", help="Formats to write for every log: {prediction_formats:,}.")] = (
        "csv"
    )
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("predict", epilog="Example: steelyard predict run tomorrow.parquet --map columns.toml -o torques")
@opt.with_options(PredictOptions)
def predict(o: PredictOptions) -> None:
    """Predict the torques of logged motions with a model or a bank of local models, with 95 % bands."""
    from steelyard.prediction._band_of import torque_band_of, torque_delay_of
    from steelyard.prediction.predict import predict as predict_torques

    options: dict[str, Any] = {"names": _names(o.logs), "cutoff_hz": o.cutoff, "formats": opt.words(o.to)}

    def run() -> Predictions:
        if o.robot:
            from steelyard.local.run_folders import load_bank

            bank = load_bank(o.model, o.robot_options.robot(o.robot))
            logs = opt.logs_from(o.logs, bank.robot, o.mapping)
            return predict_torques(bank, logs, label="the bank's local models", **options)
        model = o.robot_options.model(o.model)
        logs = opt.logs_from(o.logs, model.robot, o.mapping)
        band = torque_band_of(o.model, model)
        delay = torque_delay_of(o.model) if o.delay is None else o.delay
        return predict_torques(model, logs, label=f"the model of {o.model}", band=band, delay=delay, **options)

    o.out.deliver(run)


def _names(paths: list[str]) -> list[str]:
    return [Path(path).stem for path in paths]
