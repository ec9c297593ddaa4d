"""`Plan`: a designed motion, its quality, and its distance from the limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.excitation.constraints import Constraint, Limits
from steelyard.excitation.criteria import condition_number
from steelyard.excitation.fitness import Fitness
from steelyard.excitation.trajectories import Trajectory
from steelyard.excitation.trajectories.trajectory import motion_rows
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns, wide_columns
from steelyard.ground.files import plain
from steelyard.ground.numbers import number, percent

if TYPE_CHECKING:
    from steelyard.excitation.goal import Goal

_FORMAT = "steelyard-plan-1"
_CUT_SHORT = (
    "The search was stopped before its end; this is its best motion so far. Repeat the search with the same checkpoint "
    "(--checkpoint) to continue it."
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(DisplayMixin):
    """A motion designed to make parameters identifiable.

    Attributes:
        trajectory: The motion.
        joint_names: Names of the joints.
        rate: Sampling rate [Hz].
        columns: Names of the base parameters that the motion makes identifiable.
        units: Units of these base parameters.
        equations: Names of the equations: joints whose torques count, or those of the scheme.
        criterion: Name of the criterion.
        label: Description of the criterion.
        value: Minimised criterion.
        start_value: Criterion of the first random start.
        margins: Excess over each constraint, as a share of the limit (distances: m); negative: room left.
        limits: Limits of the joints.
        seed: Seed of the search.
        evaluations: Number of evaluations.
        history: Pairs (number of evaluations, best criterion until then).
        grams: WᵀW of each equation over `columns`.
        program: The via-point program, if the motion is one.
        notes: Notes for the user.
        fitness: History of the population, if one was used.
        stopped: Whether the user or a time limit stopped the search before its end.
    """

    trajectory: Trajectory
    joint_names: tuple[str, ...]
    rate: float
    columns: tuple[str, ...]
    units: tuple[str, ...]
    equations: tuple[str, ...]
    criterion: str
    label: str
    value: float
    start_value: float
    margins: dict[str, float]
    limits: Limits
    seed: int
    evaluations: int
    history: tuple[tuple[int, float], ...]
    grams: tuple[Array, ...] = field(repr=False, default=())
    program: Any = field(repr=False, default=None)
    notes: tuple[str, ...] = ()
    fitness: Fitness | None = None
    stopped: bool = False

    @classmethod
    def of_search(
        cls, trajectory: Trajectory, goal: Goal, grams: Sequence[Array], needs: Sequence[Constraint],
        columns: Sequence[str], units: Sequence[str], **more: Any,
    ) -> Plan:  # fmt: skip
        """Make a plan from the result of a search.

        Args:
            trajectory: The motion.
            goal: Objective of the search.
            grams: WᵀW of each equation over its own columns.
            needs: Constraints of the motion.
            columns, units: The parameters of the design.
            more: The other fields.
        """
        if more.get("stopped"):
            more["notes"] = (*more.get("notes", ()), _CUT_SHORT)
        whole = [np.zeros((len(columns),) * 2) for _ in grams]
        for table, gram, place in zip(whole, grams, goal.observation.places, strict=True):
            table[np.ix_(place, place)] = gram
        # Distances are reported in metres; the search uses multiples of `unit`.
        margins = {c.name: c.excess(trajectory) * getattr(c, "unit", 1.0) for c in needs}
        return cls(
            trajectory, columns=tuple(columns), units=tuple(units), equations=goal.observation.names,
            criterion=goal.criterion.name, label=goal.label, margins=margins, grams=tuple(whole), **more,
        )  # fmt: skip

    def headline(self) -> Headline:
        seconds, names = number(self.trajectory.duration), len(self.columns)
        place = "within all limits" if self.violation <= 0.0 else f"beyond a limit by {percent(100.0 * self.violation)}"
        value = f"{self.label} {number(self.value)} (at the start {number(self.start_value)})"
        kind: Any = "bad" if self.violation > 0.0 else "warning" if self.notes else "good"
        return Headline(kind, f"a motion of {seconds} s for {names} parameters, {place}; {value}", self.notes)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return the excess over each constraint ("margins"; negative: room left) and the samples ("motion")."""
        return {"margins": lambda: by_columns(("constraint", "margin"), list(self.margins.items())),
                "motion": self._motion}  # fmt: skip

    def _motion(self) -> NamedColumns:
        t = self.trajectory.times(self.rate)
        signals = zip(("q", "dq", "ddq"), self.trajectory.sample(t), strict=True)
        return wide_columns(t, dict(signals), self.joint_names)

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Return figures of the signals as shares of their limits ("motion") and of the search ("search")."""
        from steelyard.excitation.page import motion_figure, search_figure

        return {"motion": partial(motion_figure, self), "search": partial(search_figure, self)}

    @property
    def violation(self) -> float:
        """Largest excess over any limit at any instant, as a share of the limit; 0 if all are kept."""
        return max(0.0, *self.margins.values())

    @cached_property
    def gram(self) -> Array:
        """WᵀW over `columns`, rows unweighted."""
        return np.asarray(np.sum(self.grams, axis=0))

    @property
    def condition_number(self) -> float:
        """cond₂ of W over `columns`, unscaled, rows unweighted, at `rate`."""
        return condition_number(self.gram)

    def standard_errors(self, noise: ArrayLike) -> Array:
        """Compute the expected standard error of every base parameter after one pass, by weighted least squares.

        Args:
            noise: Standard deviation of white noise of the equations, one number or one per equation.
        """
        sigma = np.asarray(noise, dtype=float)
        if sigma.shape not in ((), (len(self.equations),)) or not np.all(sigma > 0.0):
            raise ShapeError(f"noise must be one positive number, or {len(self.equations)}, one per equation.")
        sigmas = np.broadcast_to(sigma, (len(self.equations),))
        information = np.sum([g / s**2 for g, s in zip(self.grams, sigmas, strict=True)], axis=0)
        return np.asarray(np.sqrt(np.diag(np.linalg.inv(information))))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the samples; `Trajectory.from_dict(plan["trajectory"])` restores the motion."""
        limits = {k: v.tolist() for k, v in vars(self.limits).items()}
        return plain(  # type: ignore[no-any-return]
            {
                "format": _FORMAT,
                "joints": self.joint_names,
                "rate": self.rate,
                "duration": self.trajectory.duration,
                "criterion": {"name": self.criterion, "of": self.label, "value": self.value, "start": self.start_value},
                "condition_number": self.condition_number,
                "condition_of": "columns of the structural base, unscaled, rows unweighted",
                "columns": [{"name": n, "unit": u} for n, u in zip(self.columns, self.units, strict=True)],
                "equations": self.equations,
                "violation": self.violation,
                "margins": self.margins,
                "limits": limits,
                "seed": self.seed,
                "evaluations": self.evaluations,
                "stopped": self.stopped,
                "history": self.history,
                **({} if self.fitness is None else {"fitness": self.fitness.to_json()}),
                "trajectory": self.trajectory.to_dict(),
            }
        )

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"

    def csv_rows(self, rate: float | None = None) -> Iterator[Sequence[str | float]]:
        """Yield a header (t, q_…, dq_…, ddq_… of every joint), then one row per sample at `rate` [Hz]."""
        t = self.trajectory.times(rate or self.rate)
        yield from motion_rows(self.joint_names, t, *self.trajectory.sample(t))

    def to_ros(self, rate: float | None = None) -> dict[str, Any]:
        """Return the fields of a ROS trajectory_msgs/JointTrajectory at `rate` [Hz], with the end of the motion."""
        used = rate or self.rate
        count = round(self.trajectory.duration * used)
        t = np.minimum(np.arange(count + 1) / used, self.trajectory.duration)
        points = []
        for time, q, dq, ddq in zip(t, *self.trajectory.sample(t), strict=True):
            seconds, nanoseconds = divmod(round(float(time) * 1e9), 10**9)
            points.append(
                {
                    "positions": q.tolist(),
                    "velocities": dq.tolist(),
                    "accelerations": ddq.tolist(),
                    "time_from_start": {"sec": seconds, "nanosec": nanoseconds},
                }
            )
        return {"joint_names": list(self.joint_names), "points": points}
