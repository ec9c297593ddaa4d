"""`WatchSettings`, and `make_watch`, which creates a watch from a model, sources and settings."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.export.coerce import ModelLike
from steelyard.signals.log import Log
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.live_source import LiveSource, ReconnectingSource, SourceOptions, open_source
from steelyard.watch.loop import RobotWatch, WatchTimes
from steelyard.watch.monitor_base import MONITORS, WatchSetup
from steelyard.watch.monitors.contact import contact_calibration
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs, OutputSetup, WatchOutput, make_output
from steelyard.watch.snapshots import Snapshots
from steelyard.watch.sources.log_source import MemorySource
from steelyard.watch.threshold import read_calibration
from steelyard.watch.uncertain_model import load_uncertain_model

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
    """Settings of a watch.

    Args:
        monitors: Names of the monitors; () for all.
        outputs: Destinations: KIND or KIND=WHERE.
        state: Folder of the snapshots; "" for none.
        fresh: Whether to start from scratch and rename an existing state.
        origins: Web pages and host names beyond this machine that output servers accept.
        calibration: File with the statistics of this robot's residuals; "" to take them from the run folder.
        false_alarms_hz: Accepted rate of false alarms per monitor [1/s].
        mapping: Meaning of the columns; "" if their names suffice.
        speed: Speed of a replay: 1 for the log's own, inf for the maximum, 0 for step by step.
        torque: Signal to use as torque, if a source has several.
        hold: Number of samples that are held back to sort late ones.
        gap_s: Longest step of the clock without a gap [s]; 0: from the measured period.
        stale_s: Time without samples after which the report is stale [s].
        times: Periods of reports and snapshots.
        real_time: Whether samples of a running robot are processed with real-time priority.
        options: Further settings of monitors, by name.
    """

    monitors: Sequence[str] = ()
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
    """Parse a rate `text` such as "1/day", "2/hour" or "0.1/week"; return it in 1/s."""
    count, _, unit = text.partition("/")
    try:
        rate = float(count) / _SECONDS[unit.strip().removesuffix("s") or "s"]
    except (ValueError, KeyError):
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0.0):
        raise SteelyardError(f"'{text}' is not a rate; give one such as 1/day (units: {', '.join(_SECONDS)}).")
    return rate


# A log, its path, or the address of a running robot.
SourceLike = str | os.PathLike[str] | Log


def make_watch(
    model: ModelLike, sources: Sequence[SourceLike], settings: WatchSettings, more_outputs: Sequence[WatchOutput] = ()
) -> tuple[RobotWatch, list[str]]:
    """Create a watch that is ready to run, and sentences that say where its outputs are.

    Args:
        model: Run folder, exported description with its sidecar, a `Model`, or a robot with inertias.
        sources: One source, or logs to replay one after the other.
        settings: All other settings.
        more_outputs: Outputs besides those of the settings.
    """
    uncertain_model = load_uncertain_model(model)
    robot = uncertain_model.model.robot
    options = SourceOptions(robot, settings.mapping, settings.speed, torque=settings.torque)
    source = _open_sources(sources, options)
    setup = WatchSetup(
        uncertain_model.model, uncertain_model.run, settings.false_alarms_hz, None, settings.options, uncertain_model
    )
    if settings.calibration:
        setup = replace(setup, calibration=read_calibration(settings.calibration))
    cutoff = contact_calibration(setup, uncertain_model).cutoff_hz
    monitors = {name: MONITORS[name](setup) for name in settings.monitors or MONITORS}
    titles = {name: monitor.title for name, monitor in monitors.items()}
    units = [joint.effort_unit for joint in robot.joints]
    first = source.address.partition("\n")[0] if isinstance(sources[0], Log) else sources[0]
    title = f"{robot.name} at {first}"
    output_setup = OutputSetup(robot.joint_names, title, titles, units, source.live, settings.origins)
    outputs = [*(make_output(text, output_setup) for text in settings.outputs), *more_outputs]
    clock = SampleClock(plausible_bounds(robot), settings.hold, settings.gap_s)
    observer = MomentumObserver(uncertain_model.model, cutoff)
    if settings.fresh and not settings.state:
        raise SteelyardError("--fresh renames an existing state; give its folder with --state.")
    snapshots = (
        Snapshots(settings.state, uncertain_model.model, source.identity, settings.fresh) if settings.state else None
    )
    try:
        watch = RobotWatch(
            ReconnectingSource(source, settings.stale_s), clock, observer, monitors,
            Outputs(outputs, waits=not source.live), snapshots, settings.times, use_helper=source.forkable,
            real_time=settings.real_time,
        )  # fmt: skip
        # Outputs open after the state is read, so that a refused state leaves no output file behind.
        sentences = [sentence for output in outputs if (sentence := output.open())]
    except BaseException:
        if snapshots is not None:
            snapshots.close()
        raise
    return watch, sentences


def _open_sources(sources: Sequence[SourceLike], options: SourceOptions) -> LiveSource:
    logs = [source for source in sources if isinstance(source, Log)]
    if logs:
        if len(logs) < len(sources):
            raise SteelyardError("Sources are logs in memory and paths; give either the ones or the others.")
        return MemorySource(logs, options)
    paths = [os.fspath(source) for source in sources if not isinstance(source, Log)]
    for path in paths if len(paths) > 1 else ():
        if not Path(path).exists():
            raise SteelyardError(f"Log '{path}' does not exist; several sources are possible only if all are logs.")
    if not paths:
        raise SteelyardError("No source is given; give a log, its path, or an address such as tcp:5005.")
    return open_source("\n".join(paths), options)
