"""`steelyard watch`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.watch.settings import WatchSettings


@dataclass(frozen=True)
class WatchOptions:
    """What may be typed."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A run of `steelyard identify`, or a model it exported (.urdf)."),
        opt.FromProject("model"),
    ]
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="A log (several are replayed one after the other), - for standard input, or KIND:ADDRESS with one of "
            "{sources:or}; without a host, on this machine.",
        ),
    ] = None
    mapping: opt.MapFile = ""
    speed: Annotated[
        str, typer.Option(metavar="X", help="Of a replay: 1 for its own, max, or step (a sample a line typed).")
    ] = "1"
    torque_variable: Annotated[
        str, typer.Option("--torque-variable", metavar="NAME", help="What stands for torque over RTDE.")
    ] = ""
    hold: Annotated[int, typer.Option(metavar="K", help="Hold back samples to sort late ones.", min=0, max=1000)] = 0
    gap: Annotated[float, typer.Option(metavar="S", help="A longer step is a gap; 0: by the period.", min=0.0)] = 0.0
    stale: Annotated[float, typer.Option(metavar="S", help="Without samples for so long: stale.", min=0.01)] = 0.5
    parts: Annotated[str, typer.Option(metavar="P,…", help="What to tell: {watch_parts:,}; default all.")] = ""
    false_alarms: Annotated[str, typer.Option(metavar="N/TIME", help="How often an alarm may be false.")] = "1/day"
    calibration: Annotated[
        str, typer.Option(metavar="F", help="How the residuals scatter; default: what the run tells of them.")
    ] = ""
    calibrate: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Write the calibration from a log without contacts. May be repeated."),
    ] = None
    to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[=WHERE]", help="Where it goes: {watch_outputs:or}. May be repeated; default terminal."
        ),
    ] = None
    as_json: opt.AsJson = False
    every: Annotated[float, typer.Option(metavar="S", help="Between two reports.", min=0.0)] = 0.2
    state: Annotated[str, typer.Option(metavar="FOLDER", help="Keep the state there, and go on from it.")] = ""
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew; the state that is there becomes state-old.npz.")
    ] = False
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="A page that may open the live view, or a name of this machine, beside localhost: "
            "https://app.foxglove.dev. May be repeated.",
        ),
    ] = None
    adapt: Annotated[
        str, typer.Option(metavar="FOLDER", help="Follow the robot with a recursive model, and write it there.")
    ] = ""
    snapshot: Annotated[float, typer.Option(metavar="S", help="Between two snapshots.", min=0.1)] = 2.0

    real_time: Annotated[
        bool, typer.Option("--real-time", help="Samples of a running robot go before all else this machine does.")
    ] = False

    def settings(self) -> WatchSettings:
        """What the watch is made with."""
        from steelyard.watch.loop import WatchTimes
        from steelyard.watch.settings import WatchSettings, rate_of

        to = list(self.to or ()) or ([] if self.as_json else ["terminal"])
        return WatchSettings(
            monitors=opt.words(self.parts),
            outputs=[*(["jsonl"] if self.as_json else []), *to],
            state=self.state,
            fresh=self.fresh,
            origins=self.allow_origin or (),
            calibration=self.calibration,
            false_alarms_hz=rate_of(self.false_alarms),
            mapping=self.mapping,
            speed=_speed(self.speed),
            torque=self.torque_variable,
            hold=self.hold,
            gap_s=self.gap,
            stale_s=self.stale,
            options={"adapt": self.adapt} if self.adapt else {},
            times=WatchTimes(self.every, self.snapshot),
            real_time=self.real_time,
        )


@command("watch", epilog="Example: steelyard watch run tcp:5005 --state kept --false-alarms 1/day --to foxglove")
@opt.taking(WatchOptions)
def watch(o: WatchOptions) -> None:
    """Watch a robot while it works, by its model: what touches it, what it carries, how it ages, whether the model
    holds."""
    if o.calibrate:
        _calibrate(o)
        return
    if not o.sources:
        raise SteelyardError("SOURCE is missing; name a log, - for standard input, or one such as tcp:5005.")
    from steelyard.watch.loop import stop_on_signal
    from steelyard.watch.settings import make_watch

    made, sentences = make_watch(o.model, o.sources, o.settings())
    for sentence in sentences:
        typer.echo(sentence, err=True)
    with stop_on_signal() as stopped:
        made.run(stopped)


def _speed(text: str) -> float:
    try:
        speed = {"max": math.inf, "step": 0.0}[text] if text in ("max", "step") else float(text)
    except ValueError:
        speed = math.nan
    if not speed >= 0.0:
        raise SteelyardError(f"--speed is '{text}'; give a number such as 1 or 10, max, or step.")
    return speed


def _calibrate(o: WatchOptions) -> None:
    from steelyard.watch.model import load_uncertain_model
    from steelyard.watch.threshold import calibrate

    if not o.calibration:
        raise SteelyardError("--calibrate writes a file; name it with --calibration FILE.")
    uncertain_model = load_uncertain_model(o.model)
    found = calibrate(uncertain_model, opt.logs_from(o.calibrate, uncertain_model.model.robot, o.mapping))
    found.write(o.calibration)
    typer.echo(f"{o.calibration}: from {found.seconds:.0f} s without contact, low-pass {found.cutoff_hz:g} Hz.")
