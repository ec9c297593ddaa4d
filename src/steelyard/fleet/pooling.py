"""`pool`: robots of one model borrow strength from each other, as far as they are alike.

All robots share the links of their model; friction, offsets, gains and loads are each robot's own, drawn from a
population whose mean and variance are estimated for every kind and joint. A robot with many good logs keeps what they
say; one with a single poor log is drawn to its kin, and its error bars say by how much that helps. What varies from log
to log of the same robot (warmth, grease, a lacking term) is a variance, too: twenty logs that scatter are not twenty
times as good as one. The theory stands in docs/theory/fleets.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.linear._free import nearest_theta
from steelyard.estimation.possible.physical import nearest_possible
from steelyard.fleet._arrow import Arrow, Solved, covariances, log_variance, own_answer, score_step
from steelyard.fleet._information import Information, Informed
from steelyard.fleet.effects import LINKS_KIND, EffectGroup, FleetDesign
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# Variances are estimated from so many robots and logs at most, evenly chosen: more of them would not be known better
# than is of use.
_ROBOTS, _LOGS = 256, 800
# Logs of one robot differ by less than robots do.
_LOG_PART = 0.3
# A load that the table calls another may change the torque by as much as this part.
_OTHER_LOAD = 0.3
# Robots differ for sure where a likelihood ratio says so that chance exceeds once in 400 (half of a χ² of one degree,
# since no variance is negative): there are dozens of kinds and joints.
_SURE = 7.9
_ROUNDS, _STILL = 25, 0.03


@dataclass(frozen=True)
class KindStd:
    """How much robots of one model differ in one kind of parameter, on one joint.

    Attributes:
        kind: "links", "load mass" and so on, "gain", or the kind of a term.
        joint: the joint (of loads the link).
        std: the standard deviation between robots.
        error: its standard error.
        log_std: the standard deviation between logs of one robot, beyond their error bars.
        unit: of these; "1" for parts of the joint's torque.
        shown: whether robots differ for sure, not by chance.
    """

    kind: str
    joint: str
    std: float
    error: float
    log_std: float
    unit: str
    shown: bool


@dataclass(frozen=True, eq=False)
class PooledRobot:
    """A robot of a fleet, by its own logs and by those of its kin.

    Attributes:
        robot: its name.
        logs: how many logs were used.
        x: its coordinates: base parameters, then by which part each joint's torque is larger than the model's.
        x_covariance: of these.
        seen: which base parameters any robot shows.
        own_beta: base parameters by the robot's own logs alone; not a number where they do not show them.
        own_errors: standard errors of these.
        effects: by how much it differs from its model, in the order of `FleetDesign.ways`, as parts of the torque.
        effects_std: standard errors of these.
    """

    robot: str
    logs: int
    x: Array
    x_covariance: Array
    seen: NDArray[np.bool_]
    own_beta: Array
    own_errors: Array
    effects: Array
    effects_std: Array

    @cached_property
    def beta(self) -> Array:
        """Base parameters; not a number where no robot shows them."""
        return np.asarray(np.where(self.seen, self.x[: len(self.seen)], np.nan))

    @cached_property
    def covariance(self) -> Array:
        """Of `beta`."""
        p = len(self.seen)
        return np.asarray(np.where(np.outer(self.seen, self.seen), self.x_covariance[:p, :p], np.nan))

    @property
    def gain(self) -> Array:
        """By which part each joint's torque is larger than the model's."""
        return self.x[len(self.seen) :]

    @property
    def gain_errors(self) -> Array:
        """Standard errors of these."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.x_covariance)[len(self.seen) :], 0.0)))

    @property
    def errors(self) -> Array:
        """Standard errors of the base parameters; infinite where no robot shows them."""
        return np.asarray(np.where(np.isfinite(self.beta), np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf))

    @property
    def sharper(self) -> Array:
        """How much smaller its error bars are than by its own logs alone; infinite where these show nothing."""
        own = np.where(np.isfinite(self.own_errors), self.own_errors, np.inf)
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(self.errors), own / self.errors, 1.0)

    def estimate(self, base: BaseParameters, prior: Prior | None = None, possible: bool = True) -> Estimate:
        """As an estimator hands it out: physically possible, or free.

        Args:
            base: the base parameters that the design was made of.
            prior: what is known before, for all that no motion shows.
            possible: whether the robot must be able to exist.
        """
        return _as_estimate(self.beta, self.covariance, base, prior, possible, self.robot)


@dataclass(frozen=True, eq=False)
class PooledFleet:
    """The robots of one model.

    Attributes:
        design: what was asked.
        beta: the mean robot's base parameters; not a number where no robot shows them.
        covariance: of these.
        kinds: how much robots differ, by kind and joint.
        robots: each robot, in the order of their names.
        apart: robots that took no part in what is said of the model.
        variances: of the effects' groups, between robots, as parts of the torque.
        log_variances: of the same between logs of a robot.
        known_with: degrees of freedom of `variances`.
        informed: what makes the information of a log.
    """

    design: FleetDesign
    beta: Array
    covariance: Array
    kinds: tuple[KindStd, ...]
    robots: tuple[PooledRobot, ...]
    apart: tuple[str, ...]
    variances: Array
    log_variances: Array
    known_with: Array
    informed: Informed

    @cached_property
    def by_name(self) -> dict[str, PooledRobot]:
        """The robots by their names."""
        return {r.robot: r for r in self.robots}

    @property
    def errors(self) -> Array:
        """Standard errors of the mean robot."""
        return np.asarray(np.where(np.isfinite(self.beta), np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf))

    @property
    def ways(self) -> Array:
        """The effects, scaled to parts of the torque, `(coordinates, effects)`."""
        return self.design.ways * self.informed.scales

    def sharper(self, own: bool | None = None) -> float:
        """How much smaller error bars are than by each robot's own logs: the median over robots and parameters.

        Args:
            own: parameters that are each robot's own, or (False) those of the links; None: all.
        """
        mine = np.ones(self.design.rank, dtype=bool) if own is None else self.design.own == own
        values = np.concatenate([r.sharper[mine] for r in self.robots if r.logs] or [np.ones(1)])
        values = values[np.isfinite(values)]
        return float(np.median(values)) if len(values) else float("inf")

    @property
    def notes(self) -> tuple[str, ...]:
        """What should be known: links that are not equal for sure."""
        return tuple(
            f"The links of the robots are not all alike: what '{k.joint}' moves differs from robot to robot by "
            f"{100.0 * k.std:.2g} % of its torque."
            for k in self.kinds
            if k.kind == LINKS_KIND and k.shown
        )

    def estimate(self, base: BaseParameters, prior: Prior | None = None, possible: bool = True) -> Estimate:
        """The mean robot, as an estimator hands it out.

        Args:
            base: the base parameters that the design was made of.
            prior: what is known before, for all that no motion shows.
            possible: whether it must be able to exist.
        """
        return _as_estimate(self.beta, self.covariance, base, prior, possible, "The model")


def pool(
    design: FleetDesign, logs: Sequence[LogFactors], robots: Sequence[str] = (), *, apart: Collection[str] = ()
) -> PooledFleet:
    """Fit the robots of one model together.

    Args:
        design: base parameters and effects of the model.
        logs: of all its robots, with `robot` and `load` as the fleet's table states them; those that could not be used
            count for nothing.
        robots: names of all robots, those without any log, too; what the logs name is added.
        apart: robots that are known not to belong: they have no say in what the model and its variances are.
    """
    usable = [log for log in logs if log.factor is not None]
    names = sorted({*robots, *(log.robot for log in logs)})
    if not usable:
        raise SteelyardError("No log of the model could be used; nothing can be said of its robots.")
    outside = tuple(sorted(set(apart) & set(names)))
    if not any(log.robot not in outside for log in usable):
        raise SteelyardError("Every robot that has a log was set apart; leave some of the model.")
    with one_blas_thread():
        counted = [log for log in usable if log.robot not in outside]
        informed = Informed(design, counted)
        of_robot: dict[str, list[LogFactors]] = {name: [] for name in names}
        for log in usable:
            of_robot[log.robot].append(log)
        counting = {n: of_robot[n] for n in names if n not in outside}
        between_robots, between_logs, told, evidence = _variances(informed, counting)
        none = np.zeros((design.size, design.size))
        nothing = Information(none, none[0], none, 0.0)
        made = [sum(_of_logs(informed, of_robot[n], between_logs), nothing) for n in names]
        arrow = _arrow(informed, made, [n not in outside and bool(of_robot[n]) for n in names])
        found = arrow.solved(between_robots)
        K = np.array([i.widened for i in made])
        robots_V, model_V = covariances(arrow, found, K, between_robots, told)
        own = [own_answer(i, design.rank) if of_robot[n] else None for i, n in zip(made, names, strict=True)]
    unseen = np.full(design.rank, np.nan), np.full((design.rank, design.rank), np.nan)
    pooled = []
    for r, name in enumerate(names):
        own_beta, own_covariance = own[r] or unseen
        pooled.append(
            PooledRobot(name, len(of_robot[name]), found.x[r], robots_V[r], found.seen, own_beta,
                        np.sqrt(np.diag(own_covariance)), found.u[r], np.sqrt(found.variance_u[r]))
        )  # fmt: skip
    mean, covariance = _hidden(found.mu, model_V, found)
    kinds = _kinds(design, informed.scales, between_robots, between_logs, told, evidence)
    return PooledFleet(
        design, mean, covariance, kinds, tuple(pooled), outside, between_robots, between_logs, told, informed
    )  # fmt: skip


def _of_logs(informed: Informed, logs: Sequence[LogFactors], between_logs: Array) -> list[Information]:
    """The information of a robot's logs, each blurred by what varies from log to log."""
    design, out = informed.design, []
    ways = design.ways * informed.scales
    v = between_logs[design.group_of]
    kept = v > 0.0
    for log, other in zip(logs, _other_loads(logs), strict=True):
        info = informed.of(log)
        if other:
            load = ways[:, design.size :]
            info = info.blurred(load, np.full(load.shape[1], _OTHER_LOAD**2))
        out.append(info.blurred(ways[:, kept], v[kept]))
    return out


def _other_loads(logs: Sequence[LogFactors]) -> list[bool]:
    """Of a robot's logs, whether each has another load than most of them."""
    counts = Counter(log.load or "" for log in logs)
    usual = max(sorted(counts), key=lambda name: counts[name], default="")
    return [(log.load or "") != usual for log in logs]


def _arrow(informed: Informed, robots: Sequence[Information], counts: Sequence[bool]) -> Arrow:
    design = informed.design
    return Arrow.of(robots, design.ways * informed.scales, design.group_of, design.rank, counts)


def _variances(informed: Informed, of_robot: dict[str, list[LogFactors]]) -> tuple[Array, ...]:
    """Between robots and between logs, by group; of the former the degrees of freedom and the evidence."""
    design = informed.design
    groups = design.groups
    expected = np.array([g.expected for g in groups])
    names = [n for n, logs in of_robot.items() if logs]
    names = [names[k] for k in np.unique(np.linspace(0, len(names) - 1, min(len(names), _ROBOTS)).astype(int))]
    most = max(_LOGS // len(names), 2)
    none = np.zeros(len(groups))
    chosen = [_of_logs(informed, _evenly(of_robot[n], most), none) for n in names]
    ways = design.ways * informed.scales
    varies = np.array([g.per_log for g in groups])[design.group_of] & np.any(ways != 0.0, axis=0)
    several = any(len(logs) > 1 for logs in chosen)
    v = (0.3 * expected) ** 2
    w = np.where([g.per_log for g in groups], (0.3 * _LOG_PART * expected) ** 2, 0.0) if several else none
    J, h = (np.concatenate([[getattr(i, name) for i in logs] for logs in chosen]) for name in ("J", "h"))
    of_log = np.repeat(np.arange(len(names)), [len(logs) for logs in chosen])
    told = none
    # Links may well be equal; nothing else is, to the last digit.
    avoid = np.where([g.kind == LINKS_KIND for g in groups], 0.02, 0.5)
    for _ in range(_ROUNDS):
        B = ways[:, varies] * np.sqrt(w[design.group_of[varies]])
        JB = J @ B
        inner = np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB)
        back = inner @ np.swapaxes(JB, 1, 2)
        folded_J, folded_h = np.zeros((len(names), *J.shape[1:])), np.zeros((len(names), h.shape[1]))
        np.add.at(folded_J, of_log, J - JB @ back)
        np.add.at(folded_h, of_log, h - np.einsum("lda,la->ld", JB @ inner, np.einsum("da,ld->la", B, h)))
        arrow = Arrow(folded_J, folded_h, ways, design.group_of, design.rank, np.ones(len(names), dtype=bool))
        found = arrow.solved(v)
        step, told = score_step(found.u, found.variance_u, v, design.group_of, expected, avoid)
        more = np.zeros(len(groups))
        if several:
            V = found.Q + found.F @ found.cov_mu @ np.swapaxes(found.F, 1, 2)
            rest = h - np.einsum("lde,le->ld", J, found.x[of_log])
            root = np.sqrt(w[design.group_of[varies]])
            u = np.einsum("lab,lb->la", inner, np.einsum("da,ld->la", B, rest)) * root
            own = np.diagonal(inner, axis1=1, axis2=2)
            variance = (own + np.einsum("lad,lde,lae->la", back, V[of_log], back, optimize=True)) * root**2
            more = _log_step(u, variance, w, design.group_of[varies], _LOG_PART * expected, avoid)
        v, w = v * np.exp(step), w * np.exp(more)
        if max(np.max(np.abs(step)), np.max(np.abs(more))) < _STILL:
            break
    return v, w, told, arrow.evidence(v)


def _log_step(u: Array, variance: Array, w: Array, group_of: NDArray[np.int64], expected: Array, avoid: Array) -> Array:
    """A step of the variances between logs, of the groups that have one."""
    safe = np.where(w > 0.0, w, 1.0)
    step, _ = score_step(u, variance, safe, group_of, expected, avoid)
    return np.where(w > 0.0, step, 0.0)


def _evenly(logs: Sequence[LogFactors], most: int) -> list[LogFactors]:
    return [logs[k] for k in np.unique(np.linspace(0, len(logs) - 1, min(len(logs), most)).astype(int))]


def _hidden(beta: Array, V: Array, found: Solved) -> tuple[Array, Array]:
    """Not a number where no robot shows anything."""
    beta, V = np.where(found.seen, beta, np.nan), 0.5 * (V + V.T)
    V[~found.seen], V[:, ~found.seen] = np.nan, np.nan
    return beta, V


def _kinds(design: FleetDesign, scales: Array, v: Array, w: Array, told: Array, evidence: Array) -> tuple[KindStd, ...]:
    out = []
    for g, group in enumerate(design.groups):
        members = np.flatnonzero((design.group_of == g) & (scales > 0.0))
        if not len(members):
            continue
        scale, unit = _unit(design, scales, members, group)
        std = float(np.sqrt(v[g])) * scale
        out.append(
            KindStd(
                group.kind,
                group.joint,
                std,
                0.5 * std * float(np.sqrt(log_variance(told[g]))),
                float(np.sqrt(w[g])) * scale,
                unit,
                bool(evidence[g] > _SURE),
            )
        )
    return tuple(out)


def _unit(design: FleetDesign, scales: Array, members: NDArray[np.intp], group: EffectGroup) -> tuple[float, str]:
    """What a part of the torque is in the unit of the group's parameter, where it has one."""
    if len(members) == 1 and members[0] < design.rank and group.kind != LINKS_KIND:
        return float(scales[members[0]]), design.units[members[0]]
    return 1.0, "1"


def _as_estimate(
    beta: Array, covariance: Array, base: BaseParameters, prior: Prior | None, possible: bool, name: str
) -> Estimate:
    if not np.all(np.isfinite(beta)):
        hidden = ", ".join(n for n, b in zip(base.names, beta, strict=True) if not np.isfinite(b))
        raise SteelyardError(f"{name}: no log of the model shows {hidden}; no model of the robot can be made.")
    free = Estimate(base, beta, covariance, nearest_theta(base, beta, prior), np.zeros(0), 0.0)
    return nearest_possible(free, prior) if possible else free
