"""Explain a failed identification by the problems of its logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

from steelyard.check.check import check_study
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import as_sources
from steelyard.signals.held_poses import refuse_held_poses
from steelyard.signals.log import Finding
from steelyard.signals.source import Source
from steelyard.study import Study

_Identify = TypeVar("_Identify", bound=Callable[..., Any])


def adds_error_hint(identify: _Identify) -> _Identify:
    """Decorate `identify`: if an estimate or a score fails, raise the first problem that a check of the logs finds.

    With torques of the wrong sign no physical robot fits, and with a wrong clock no rows remain: a message about bounds
    or filters would mislead.
    """

    @wraps(identify)
    def named(robot: RobotLike, log: Any, validate: Any = (), options: Any = None, **more: Any) -> Any:
        # Logs are read once; wrong names and types raise first.
        robot, mapping = as_robot(robot), more.get("mapping")
        log = log if isinstance(log, Study) else as_sources(log, robot, mapping)
        validate = as_sources(validate, robot, mapping)
        stated = {**({} if options is None else vars(options)), **more}
        if stated.get("check", True) and not isinstance(log, Study):
            refuse_held_poses(robot, log)
        try:
            return identify(robot, log, validate, options, **more)
        except (EstimationError, LogError) as error:
            if not stated.get("check", True):
                raise
            for name, finding in _problems(robot, log, validate, stated):
                raise EstimationError(f"{name}: {finding.message} {finding.advice}".rstrip()) from error
            raise

    return named  # type: ignore[return-value]


def _problems(
    robot: Robot, log: Any, validate: Sequence[Source], options: dict[str, Any]
) -> Iterator[tuple[str, Finding]]:
    """Yield the problems of each log, fitted logs first, joints that stand, and what a mapping can fix."""
    for given, kind in ((log, "log"), (tuple(validate), "validation")):
        if not given:
            continue
        try:
            study = given if isinstance(given, Study) else Study.of(robot, given, None, options.get("preparation"))
            checks = check_study(study)
        except SteelyardError:
            continue
        names = options.get("names" if kind == "log" else "validate_names") or ()
        for k, found in enumerate(checks):
            name = names[k] if k < len(names) else f"{kind} {k + 1}"
            grave = [e for e in found.complaints if e.severity == "problem"]
            still = [e for e in found.complaints if e.kind == "motionless" and kind == "log"]
            yield from ((name, e) for e in (*grave, *still, *(e for e in found.complaints if e.fix)))
