"""`design_stance_motion`: a motion of a standing robot whose feet stay in place, informative for identification.

The base sways by a Fourier series, and the legs follow. The feet push against the ground without sliding, and joints
and drives stay within their limits, by the described bodies. Among random series, improved step by step, the one with
the largest information (log det) of the rows without contact forces wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.floating.null_space import null_space
from steelyard.floating.stance import Stance
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.progress import report_progress
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console

# Lines of the series per coordinate, and their band [Hz]: slow enough for balance, fast enough for inertias.
_LINES, _BAND = 5, (0.1, 1.2)
# Sway of the base before it is scaled to the limits: shares of its height over the feet, and turns [rad].
_SHIFT, _TURN = 0.25, 0.35
# Every foot carries this share of its part of the weight, and tangential forces stay below this share of the normal.
_LEAST_LOAD, _FRICTION = 0.1, 0.5
# Share of the limits of joints and drives that the motion may use.
_MARGIN = 0.9
# Random motions, steps of improvement, and rate of the search [Hz].
_STARTS, _REFINEMENTS, _SEARCH_RATE = 16, 40, 20.0
# Seconds until the sway has its full size, and before the end.
_RAMP = 1.5


@dataclass(frozen=True, eq=False, repr=False)
class StanceMotion(Outcome, DisplayMixin):
    """A motion of a standing robot.

    Attributes:
        stance: Robot and feet.
        t: Times [s].
        q, dq, ddq: Motion of all coordinates, `(samples, joints)`; positions of the base are relative to its start.
        rank: Number of base parameters that the motion can show, of those of the floating robot.
        base: Base parameters of the floating robot.
        condition: Condition number of the rows, columns scaled to unit norm.
        load: Smallest normal force of a foot, relative to its part of the weight.
        sliding: Largest tangential force relative to the normal force.
    """

    stance: Stance
    t: Array
    q: Array
    dq: Array
    ddq: Array
    rank: int
    base: BaseParameters
    condition: float
    load: float
    sliding: float

    def headline(self) -> Headline:
        names = ", ".join(name for name, _ in self.stance.feet)
        shift = np.ptp(self.q[:, self.stance.base[:3]], axis=0)
        points = (
            f"The base moves by {1e3 * shift[0]:.0f}, {1e3 * shift[1]:.0f} and {1e3 * shift[2]:.0f} mm.",
            f"It shows {self.rank} of {self.base.rank} base parameters of the floating robot; condition "
            f"{self.condition:.3g} (columns of unit norm).",
            f"Each foot carries at least {100 * self.load:.0f} % of its part of the weight; tangential forces are at "
            f"most {self.sliding:.2f} of the normal forces.",
        )
        return Headline("good", f"{self.stance.robot.name}: {self.t[-1]:.0f} s of sway on {names}.", points)

    def tables(self) -> Mapping[str, Any]:
        return {"motion": self._motion_table}

    def _motion_table(self) -> NamedColumns:
        names, own = self.stance.names, self.stance.driven
        out: dict[str, Any] = {"t": self.t}
        for head, x in (("q", self.q), ("dq", self.dq), ("ddq", self.ddq)):
            out |= {f"{head}_{name}": x[:, k] for name, k in zip(names, own, strict=True)}
        return out

    def to_json(self) -> dict[str, Any]:
        return {
            "robot": self.stance.robot.name,
            "feet": [{"frame": name, "contact": kind} for name, kind in self.stance.feet],
            "duration": float(self.t[-1]),
            "rate": float(1.0 / (self.t[1] - self.t[0])),
            "base_parameters": {"shown": self.rank, "floating": self.base.rank},
            "condition": self.condition,
            "smallest_load": self.load,
            "largest_tangential_share": self.sliding,
        }

    def files(self) -> Mapping[str, Content]:
        columns = self._motion_table()
        table = np.column_stack(list(columns.values()))
        lines = [",".join(columns), *(",".join(f"{x:.9g}" for x in row) for row in table)]
        return {"motion.csv": "\n".join(lines) + "\n"}

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say_headline

        say_headline(out, self.headline())
        if folder:
            out.print(f"Written to {folder}: result.json, motion.csv.")


def design_stance_motion(
    robot: Robot, feet: Sequence[str], posture: Sequence[float], *, duration: float = 20.0, rate: float = 200.0,
    seed: int = 0,
) -> StanceMotion:  # fmt: skip
    """Design a motion of a standing robot whose feet stay in place.

    Args:
        robot: Robot with a floating base and described bodies.
        feet: Frames or links that stay in place: "NAME" (a point) or "NAME:flat".
        posture: Positions of the driven joints when the robot stands [rad, m].
        duration: Duration [s].
        rate: Sampling rate [Hz].
        seed: Seed of the search.
    """
    kinds = [(name.partition(":")[0], name.partition(":")[2] or "point") for name in feet]
    if wrong := next((kind for _, kind in kinds if kind not in ("point", "flat")), None):
        raise ExcitationError(f"The contact of a foot is '{wrong}'; write NAME, or NAME:flat.")
    if not robot.has_inertia:
        raise ExcitationError(f"{robot.name}: its description has no masses, which balance needs; add them.")
    if duration < 4.0 * _RAMP:
        raise ExcitationError(f"The duration is {duration:g} s; a sway takes {4.0 * _RAMP:g} s or more.")
    stance = Stance(robot, kinds, posture)
    with one_blas_thread():
        return _Search(stance, duration, seed).best(rate)


class _Search:
    """Random series of the base, scaled to the limits, improved by random steps."""

    def __init__(self, stance: Stance, duration: float, seed: int) -> None:
        self.stance, self.duration, self.rng = stance, duration, np.random.default_rng(seed)
        self.theta = stance.robot.inertial_parameters
        self.base = base_parameters(stance.robot)
        frames = stance.frames(stance.start[None])
        height = max(float(np.abs(np.mean([p[0, 2] for _, p in frames]))), 0.05)
        self.size = np.array([_SHIFT * height] * 3 + [_TURN] * 3)
        count = int(duration * _BAND[1])
        self.lines = np.arange(max(1, round(duration * _BAND[0])), count + 1)
        self.weight = float(self.theta[::10].sum()) * float(np.linalg.norm(stance.robot.gravity))
        self.columns: Array | None = None

    def sway(self, series: Array, rate: float) -> Array:
        """Compute the sway of the base from the cosines and sines of its lines."""
        t = np.arange(round(self.duration * rate) + 1) / rate
        angle = 2.0 * np.pi * np.outer(t, self.lines) / self.duration
        x = np.hstack([np.cos(angle), np.sin(angle)]) @ series
        ends = np.clip(np.minimum(t, self.duration - t) / _RAMP, 0.0, 1.0)[:, None]
        return np.asarray(ends**3 * (10 - 15 * ends + 6 * ends**2) * x * self.size)

    def draw(self) -> Array:
        """Draw a series with a few lines per coordinate, with displacements of about one unit."""
        series = np.zeros((2 * len(self.lines), 6))
        for k in range(6):
            own = self.rng.choice(len(self.lines), min(_LINES, len(self.lines)), replace=False)
            series[own, k], series[own + len(self.lines), k] = self.rng.standard_normal((2, len(own)))
        return np.asarray(series / np.sqrt(2.0 * _LINES))

    def judged(self, series: Array, rate: float) -> tuple[bool, tuple[Array, Array, Array] | None, float, float]:
        """Return whether a series keeps all limits, its motion, the smallest load and the largest tangential share."""
        motion = self.stance.motion(self.sway(series, rate), rate)
        if motion is None:
            return False, None, 0.0, np.inf
        q, dq, _ = motion
        force, torque = self.stance.forces(motion, self.theta)
        normal = force[:, :, 2]
        load = float(normal.min()) * len(self.stance.feet) / self.weight
        sliding = float(np.max(np.linalg.norm(force[:, :, :2], axis=2) / np.maximum(normal, 1e-9)))
        own = [self.stance.robot.joints[k] for k in self.stance.driven]
        q, dq = q[:, self.stance.driven], dq[:, self.stance.driven]
        lower, upper, speed, effort = (np.array([getattr(j, x) for j in own]) for x in _LIMITS)
        inside = bool(
            np.all(q >= lower) and np.all(q <= upper) and np.all(np.abs(dq) <= _MARGIN * speed)
            and np.all(np.abs(torque) <= _MARGIN * effort)
        )  # fmt: skip
        return inside and load >= _LEAST_LOAD and sliding <= _FRICTION, motion, load, sliding

    def rows(self, motion: tuple[Array, Array, Array]) -> Array:
        """Compute the rows without contact forces, `(rows, base parameters)`."""
        q, dq, ddq = motion
        N, usual = null_space(self.stance.jacobian(q), np.ones(q.shape[1]))
        Y = self.stance.robot.dynamics.torque_regressor(q, dq, ddq)[:, :, list(self.base.independent)]
        W = (np.swapaxes(N, 1, 2) @ Y)[usual]
        return np.asarray(W.reshape(-1, W.shape[2]))

    def information(self, motion: tuple[Array, Array, Array]) -> float:
        """Compute log det of the information about the base parameters, columns scaled as in the first motion."""
        W = self.rows(motion)
        if self.columns is None:
            norms = np.linalg.norm(W, axis=0)
            self.columns = np.where(norms > 1e-9 * norms.max(), norms, np.inf)
        scaled = W / self.columns
        return float(np.linalg.slogdet(scaled.T @ scaled + _WEAK * np.eye(W.shape[1]))[1])

    def scaled(self, series: Array) -> tuple[Array, tuple[Array, Array, Array]] | None:
        """Shrink a series until it keeps all limits; None if that takes most of it."""
        for _ in range(8):
            inside, motion, *_ = self.judged(series, _SEARCH_RATE)
            if inside and motion is not None:
                return series, motion
            series = 0.75 * series
        return None

    def best(self, rate: float) -> StanceMotion:
        """Search, and compute the best motion at its final rate."""
        best: tuple[float, Array] | None = None
        for k in range(_STARTS + _REFINEMENTS):
            report_progress("Searching", k / (_STARTS + _REFINEMENTS), "motions on fixed feet")
            series = self.draw() if k < _STARTS or best is None else best[1] + 0.2 * self.draw()
            found = self.scaled(series)
            if found is not None and (best is None or (own := self.information(found[1])) > best[0]):
                best = (self.information(found[1]) if best is None else own, found[0])
        if best is None:
            raise ExcitationError(
                f"{self.stance.robot.name}: no sway keeps the feet loaded and the joints within their limits; state a "
                "posture in balance (--posture), more feet, or flat contacts."
            )
        series = best[1]
        while not (judged := self.judged(series, rate))[0]:
            series = 0.95 * series
        _, motion, load, sliding = judged
        assert motion is not None
        step = max(1, int(rate / _SEARCH_RATE))
        W = self.rows((motion[0][::step], motion[1][::step], motion[2][::step]))
        norms = np.linalg.norm(W, axis=0)
        values = np.linalg.svd(W[:, norms > 1e-9 * norms.max()] / norms[norms > 1e-9 * norms.max()], compute_uv=False)
        rank = int(np.sum(values > _SHOWN * values[0]))
        t = np.arange(len(motion[0])) / rate
        return StanceMotion(
            self.stance, t, *motion, rank, self.base, float(values[0] / values[rank - 1]), load, sliding
        )


_LIMITS = ("lower", "upper", "velocity", "effort")
# Information of the description: directions that no motion on these feet shows do not count.
_WEAK = 1e-6
# Singular values below this share of the largest are not shown by a log of this length.
_SHOWN = 1e-4
