"""`make_watch`: a watch of the model, sources and outputs that somebody names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.loop import RobotWatch, WatchTimes
from steelyard.watch.model import watched_model
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs, OutputSetup, make_output
from steelyard.watch.parts import WATCH_PARTS, WatchSetup
from steelyard.watch.snapshots import Snapshots
from steelyard.watch.source import Lasting, SourceOptions, open_source
from steelyard.watch.threshold import read_calibration
from steelyard.watch.told.contact import contact_calibration

_SECONDS = {
    "s": 1.0,
    "min": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
    "month": 2629800.0,
    "year": 31557600.0,
}


@dataclass(frozen=True)
class WatchSettings:
    """How a robot is watched.

    Args:
        parts: what is told, by name; () for all there is.
        outputs: where it goes: KIND or KIND=WHERE.
        state: the folder of snapshots; "" for none.
        fresh: begin anew, and set aside a state that is there.
        origins: pages and host names beyond this machine that servers of outputs answer to.
        calibration: the file that says how this robot's residuals scatter; "" for what the run folder tells.
        false_alarms_hz: how often a part may be wrong, per second.
        mapping: what columns mean; "" where names alone tell.
        speed: of a replay: 1 for the log's own, inf for as fast as can be, 0 for step by step.
        torque: what stands for torque, where a source has several.
        hold: samples that are held back, so that late ones find their place.
        gap_s: a longer step of the clock is a gap; 0: by the period that is seen.
        stale_s: after so long without samples what is told is stale.
        times: how often is told and kept.
        real_time: samples of a running robot are seen with real-time priority.
        options: further settings of parts, by name.
    """

    parts: Sequence[str] = ()
    outputs: Sequence[str] = ()
    state: str = ""
    fresh: bool = False
    origins: Sequence[str] = ()
    calibration: str = ""
    false_alarms_hz: float = 1.0 / 86400.0
    mapping: str = ""
    speed: float = 1.0
    torque: str = ""
    hold: int = 0
    gap_s: float = 0.0
    stale_s: float = 0.5
    times: WatchTimes = field(default_factory=WatchTimes)
    real_time: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def rate_of(text: str) -> float:
    """How often per second `text` means: "1/day", "2/hour", "0.1/week"."""
    count, _, unit = text.partition("/")
    try:
        rate = float(count) / _SECONDS[unit.strip().removesuffix("s") or "s"]
    except (ValueError, KeyError):
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0.0):
        raise SteelyardError(f"'{text}' is no rate; write one such as 1/day ({', '.join(_SECONDS)}).")
    return rate


def make_watch(given: str, sources: Sequence[str], settings: WatchSettings) -> tuple[RobotWatch, list[str]]:
    """A watch, ready to run, and sentences about where to look.

    Args:
        given: the model: a run folder, an exported description with its sidecar, or a robot with inertias.
        sources: one source, or logs that are replayed one after the other.
        settings: all the rest.
    """
    watched = watched_model(given)
    robot = watched.model.robot
    options = SourceOptions(robot, settings.mapping, settings.speed, torque=settings.torque)
    for path in sources if len(sources) > 1 else ():
        if not Path(path).exists():
            raise SteelyardError(f"'{path}' is no log that exists; only logs are watched one after the other.")
    source = open_source("\n".join(sources), options)
    setup = WatchSetup(watched.model, watched.run, settings.false_alarms_hz, None, settings.options, watched)
    if settings.calibration:
        setup = replace(setup, calibration=read_calibration(settings.calibration))
    cutoff = contact_calibration(setup, watched).cutoff_hz
    parts = {name: WATCH_PARTS[name](setup) for name in settings.parts or WATCH_PARTS}
    titles = {name: part.title for name, part in parts.items()}
    units = [joint.effort_unit for joint in robot.joints]
    title = f"{robot.name} at {sources[0]}"
    named = OutputSetup(robot.joint_names, title, titles, units, source.live, settings.origins)
    outputs = [make_output(text, named) for text in settings.outputs]
    clock = SampleClock(plausible_bounds(robot), settings.hold, settings.gap_s)
    lasting = Lasting(source, settings.stale_s)
    observer = MomentumObserver(watched.model, cutoff)
    served = Outputs(outputs, waits=not source.live)
    if settings.fresh and not settings.state:
        raise SteelyardError("--fresh sets a state aside; name its folder with --state.")
    snapshots = Snapshots(settings.state, watched.model, source.identity, settings.fresh) if settings.state else None
    try:
        made = RobotWatch(
            lasting, clock, observer, parts, served, snapshots, settings.times, apart=source.apart,
            real_time=settings.real_time,
        )  # fmt: skip
        # A state that is refused must leave no file of an output behind: they begin after it is read.
        told = [sentence for output in outputs if (sentence := output.open())]
    except BaseException:
        if snapshots is not None:
            snapshots.close()
        raise
    return made, told
