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
    """Options of `steelyard watch`."""

    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Run of `steelyard identify`, or its exported model (.urdf)."),
        opt.FromProject("model"),
    ]
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Log (several are replayed in sequence), - for standard input, or KIND:ADDRESS with KIND one of "
            "{sources:or}; an address without host is on this machine.",
        ),
    ] = None
    mapping: opt.MapFile = ""
    speed: Annotated[
        str,
        typer.Option(metavar="X", help="Speed of a replay: factor of real time, max, or step (one sample per Enter)."),
    ] = "1"
    torque_variable: Annotated[
        str, typer.Option("--torque-variable", metavar="NAME", help="RTDE variable to use as torque.")
    ] = ""
    hold: Annotated[int, typer.Option(metavar="K", help="Delay by K samples to sort late ones.", min=0, max=1000)] = 0
    gap: Annotated[
        float,
        typer.Option(
            metavar="S", help="Smallest time step that counts as a gap, s; 0: from the sampling period.", min=0.0
        ),
    ] = 0.0
    stale: Annotated[
        float, typer.Option(metavar="S", help="Report stale data after this time without samples, s.", min=0.01)
    ] = 0.5
    parts: Annotated[str, typer.Option(metavar="P,…", help="What to monitor: {watch_monitors:,}; default: all.")] = ""
    false_alarms: Annotated[str, typer.Option(metavar="N/TIME", help="Allowed false-alarm rate.")] = "1/day"
    calibration: Annotated[
        str, typer.Option(metavar="F", help="Calibration of the residuals' scatter; default: that of the run.")
    ] = ""
    calibrate: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Write the calibration from a log without contacts. May be repeated."),
    ] = None
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND[=WHERE]", help="Output: {watch_outputs:or}. May be repeated; default: terminal."),
    ] = None
    as_json: opt.AsJson = False
    every: Annotated[float, typer.Option(metavar="S", help="Time between reports, s.", min=0.0)] = 0.2
    state: Annotated[str, typer.Option(metavar="FOLDER", help="Save the state there, and continue from it.")] = ""
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start with a new state; rename an existing one to state-old.npz.")
    ] = False
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Additional web page, or name of this machine, that may open the live view, e.g. "
            "https://app.foxglove.dev. May be repeated.",
        ),
    ] = None
    adapt: Annotated[str, typer.Option(metavar="FOLDER", help="Adapt the model recursively, and write it there.")] = ""
    snapshot: Annotated[float, typer.Option(metavar="S", help="Time between snapshots of the state, s.", min=0.1)] = 2.0

    real_time: Annotated[
        bool, typer.Option("--real-time", help="Give this process priority over others on this machine.")
    ] = False

    def settings(self) -> WatchSettings:
        """Convert to settings of the monitor."""
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
@opt.with_options(WatchOptions)
def watch(o: WatchOptions) -> None:
    """Monitor a working robot with its model: contacts, payload, wear, validity of the model."""
    if o.calibrate:
        _calibrate(o)
        return
    if not o.sources:
        raise SteelyardError("SOURCE is missing; give a log, - for standard input, or an address such as tcp:5005.")
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
    from steelyard.watch.threshold import calibrate_contact
    from steelyard.watch.uncertain_model import load_uncertain_model

    if not o.calibration:
        raise SteelyardError("--calibrate writes a file; give its name with --calibration FILE.")
    watched = load_uncertain_model(o.model)
    found = calibrate_contact(watched, opt.logs_from(o.calibrate, watched.model.robot, o.mapping))
    found.write(o.calibration)
    typer.echo(
        f"{o.calibration}: calibrated with {found.seconds:.0f} s without contact, low-pass {found.cutoff_hz:g} Hz."
    )
