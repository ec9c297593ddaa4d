"""Where a fit or a score fails, what is wrong with the logs is the reason to give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

from steelyard.check.check import check_study
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import as_sources
from steelyard.signals.log import Finding
from steelyard.signals.source import Source
from steelyard.study import Study

_Identify = TypeVar("_Identify", bound=Callable[..., Any])


def adds_error_hint(identify: _Identify) -> _Identify:
    """Decorate `identify`: an estimator that finds no robot, or a score that finds no rows, gives what `check` finds.

    Torques whose sign is turned leave no room for a robot that can exist, and a clock that is wrong no rows to score;
    to say so of bounds or of filters would send people elsewhere.
    """

    @wraps(identify)
    def named(robot: RobotLike, log: Any, validate: Any = (), **options: Any) -> Any:
        # Read once, whatever they come as; a wrong name or type is said before anything else.
        robot, mapping = as_robot(robot), options.get("mapping")
        log = log if isinstance(log, Study) else as_sources(log, robot, mapping)
        validate = as_sources(validate, robot, mapping)
        try:
            return identify(robot, log, validate, **options)
        except (EstimationError, LogError) as error:
            if not options.get("check", True):
                raise
            for name, finding in _problems(robot, log, validate, options):
                raise EstimationError(f"{name}: {finding.message} {finding.advice}".rstrip()) from error
            raise

    return named  # type: ignore[return-value]


def _problems(
    robot: Robot, log: Any, validate: Sequence[Source], options: dict[str, Any]
) -> Iterator[tuple[str, Finding]]:
    """Problems of each log, the fitted ones first, then what a mapping could mend; of a log that can be looked at."""
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
            named = names[k] if k < len(names) else f"{kind} {k + 1}"
            grave = [e for e in found.complaints if e.severity == "problem"]
            yield from ((named, e) for e in (*grave, *(e for e in found.complaints if e.fix)))
