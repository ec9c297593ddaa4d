"""`Plan`: a motion to be played, what it is good for, and the proof that it keeps to the limits."""

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
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns, wide_columns
from steelyard.ground.files import plain
from steelyard.ground.numbers import number, percent

if TYPE_CHECKING:
    from steelyard.excitation.goal import Goal

_FORMAT = "steelyard-plan-1"
_CUT_SHORT = (
    "The search was stopped before its end; this is the best motion that it had found until then. The same search with "
    "the same checkpoint (--checkpoint) goes on from there."
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Displayed):
    """A motion designed to make parameters visible.

    `condition_number` is cond₂ of the columns of W named by `columns`, unscaled, rows of the torques (or of the
    scheme) that count, at `rate`. `value` is the criterion that was minimised, `start_value` its value for the first
    random start, and `label` says what it is of. `violation` is the largest excess over any limit at any instant, as
    a share of the limit: 0.0. `margins` says how near each constraint comes (negative: room left).
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
    # The via-point program that was played, where the motion is one.
    program: Any = field(repr=False, default=None)
    # What a person should know of the design.
    notes: tuple[str, ...] = ()
    # Generation by generation, where a population was bred.
    fitness: Fitness | None = None
    # Whether the search was stopped before its end, by whoever waited for it or by the time it was given.
    stopped: bool = False

    @classmethod
    def reached(
        cls, trajectory: Trajectory, goal: Goal, grams: Sequence[Array], needs: Sequence[Constraint],
        columns: Sequence[str], units: Sequence[str], **more: Any,
    ) -> Plan:  # fmt: skip
        """What a search has come to.

        Args:
            trajectory: the motion.
            goal: what it was to reach: the criterion, and the equations it looks at.
            grams: WᵀW of each equation over the columns that it shows.
            needs: what the motion keeps to.
            columns, units: the parameters that it was designed for.
            more: the other fields.
        """
        if more.get("stopped"):
            more["notes"] = (*more.get("notes", ()), _CUT_SHORT)
        whole = [np.zeros((len(columns),) * 2) for _ in grams]
        for table, gram, place in zip(whole, grams, goal.observation.places, strict=True):
            table[np.ix_(place, place)] = gram
        # Distances are told in metres, whatever the search counts them in.
        margins = {c.name: c.excess(trajectory) * getattr(c, "unit", 1.0) for c in needs}
        return cls(
            trajectory, columns=tuple(columns), units=tuple(units), equations=goal.observation.names,
            criterion=goal.criterion.name, label=goal.label, margins=margins, grams=tuple(whole), **more,
        )  # fmt: skip

    def glance(self) -> Glance:
        seconds, names = number(self.trajectory.duration), len(self.columns)
        kept = "within all limits" if self.violation <= 0.0 else f"beyond a limit by {percent(100.0 * self.violation)}"
        value = f"{self.label} {number(self.value)} (at the start {number(self.start_value)})"
        kind: Any = "bad" if self.violation > 0.0 else "warning" if self.notes else "good"
        return Glance(kind, f"a motion of {seconds} s that shows {names} parameters, {kept}; {value}", self.notes)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """How near the motion comes to each constraint ("margins": negative is room left), and the "motion" itself."""
        return {"margins": lambda: by_columns(("constraint", "margin"), list(self.margins.items())),
                "motion": self._motion}  # fmt: skip

    def _motion(self) -> NamedColumns:
        t = self.trajectory.times(self.rate)
        signals = zip(("q", "dq", "ddq"), self.trajectory.sample(t), strict=True)
        return wide_columns(t, dict(signals), self.joint_names)

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Positions, velocities and accelerations as shares of their limits ("motion"); the way there ("search")."""
        from steelyard.excitation.page import motion_figure, search_figure

        return {"motion": partial(motion_figure, self), "search": partial(search_figure, self)}

    @property
    def violation(self) -> float:
        return max(0.0, *self.margins.values())

    @cached_property
    def gram(self) -> Array:
        """WᵀW over `columns`, rows unweighted."""
        return np.asarray(np.sum(self.grams, axis=0))

    @property
    def condition_number(self) -> float:
        return condition_number(self.gram)

    def standard_errors(self, noise: ArrayLike) -> Array:
        """Expected standard error of every base parameter, for white noise of standard deviation `noise` on the
        equations (one number, or one per equation), weighted least squares and one pass of the motion."""
        sigma = np.asarray(noise, dtype=float)
        if sigma.shape not in ((), (len(self.equations),)) or not np.all(sigma > 0.0):
            raise ShapeError(f"noise must be one positive number, or {len(self.equations)}, one per equation.")
        each = np.broadcast_to(sigma, (len(self.equations),))
        information = np.sum([g / s**2 for g, s in zip(self.grams, each, strict=True)], axis=0)
        return np.asarray(np.sqrt(np.diag(np.linalg.inv(information))))

    # ---------------------------------------------------------------- for machines

    def to_dict(self) -> dict[str, Any]:
        """Everything but the samples; `Trajectory.from_dict(plan["trajectory"])` gives the motion back."""
        limits = {k: v.tolist() for k, v in vars(self.limits).items()}
        return plain(  # type: ignore[no-any-return]
            {
                "format": _FORMAT,
                "joints": self.joint_names,
                "rate": self.rate,
                "duration": self.trajectory.duration,
                "criterion": {"name": self.criterion, "of": self.label, "value": self.value, "start": self.start_value},
                "condition_number": self.condition_number,
                "condition_of": "columns as they stand in the structural base, unscaled, rows unweighted",
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
        """A header (t, q_…, dq_…, ddq_… of every joint), then one row per sample."""
        t = self.trajectory.times(rate or self.rate)
        yield from motion_rows(self.joint_names, t, *self.trajectory.sample(t))

    def to_ros(self, rate: float | None = None) -> dict[str, Any]:
        """The fields of a ROS trajectory_msgs/JointTrajectory, as plain data; the end of the motion included."""
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
