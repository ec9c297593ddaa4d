"""`pool`: robots of one model borrow strength from each other, as far as they are alike.

All robots share the links of their model; friction, offsets, gains and loads are each robot's own, drawn from a
population whose mean and variance are estimated for every kind and joint. A robot with many good logs keeps what they
say; one with a single poor log is drawn to its kin, and its error bars say by how much that helps. What varies from log
to log of the same robot (warmth, grease, a lacking term) is a variance, too: twenty logs that scatter are not twenty
times as good as one. The theory stands in docs/theory/fleets.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.linear._free import nearest_theta
from steelyard.estimation.possible.physical import nearest_possible
from steelyard.fleet._arrow import Arrow, Solved, covariances, log_variance, own_answer
from steelyard.fleet._between import between_variances, of_logs, sampled
from steelyard.fleet._information import Information, Informed
from steelyard.fleet._motions import motion_ratio
from steelyard.fleet.effects import LINKS_KIND, EffectGroup, FleetDesign
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# Robots differ for sure where a likelihood ratio says so that chance exceeds once in 400 (half of a χ² of one degree,
# since no variance is negative): there are dozens of kinds and joints.
_SURE = 7.9
# Links that differ by less than this part of the torque are made alike.
_WORTH = 0.005


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
        info: what its logs say together.
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
    info: Information

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

    def information(self, logs: Sequence[LogFactors]) -> Information:
        """What usable logs say, each by itself.

        Args:
            logs: of one of the robots, all of them: what most of them carry is its usual load.
        """
        return of_logs(self.informed, logs)

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
            if k.kind == LINKS_KIND and k.shown and k.std > _WORTH
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
    design: FleetDesign,
    logs: Sequence[LogFactors],
    robots: Sequence[str] = (),
    *,
    apart: Collection[str] = (),
    first: PooledFleet | None = None,
) -> PooledFleet:
    """Fit the robots of one model together.

    Args:
        design: base parameters and effects of the model.
        logs: of all its robots, with `robot` and `load` as the fleet's table states them; those that could not be used
            count for nothing.
        robots: names of all robots, those without any log, too; what the logs name is added.
        apart: robots that are known not to belong: they have no say in what the model and its variances are.
        first: the same logs pooled before it was known what does not belong: what noise is like is taken from there,
            and the variances are looked for near its own.
    """
    usable = [log for log in logs if log.factor is not None]
    names = sorted({*robots, *(log.robot for log in logs)})
    if not usable:
        raise SteelyardError("No log of the model could be used; nothing can be said of its robots.")
    outside = tuple(sorted(set(apart) & set(names)))
    if not any(log.robot not in outside for log in usable):
        raise SteelyardError("Every robot that has a log was set apart; leave some of the model.")
    with one_blas_thread():
        of_robot: dict[str, list[LogFactors]] = {name: [] for name in names}
        for log in usable:
            of_robot[log.robot].append(log)
        counting = {n: of_robot[n] for n in names if n not in outside}
        sample = sampled(counting)
        learnt = [log for own in sample.values() for log in own]
        informed = Informed(design, learnt) if first is None else first.informed
        start = None if first is None else (first.variances, first.log_variances)
        between_robots, between_logs, told, evidence = between_variances(informed, sample, start)
        made = [of_logs(informed, own, between_logs).together if own else Information.none(design.size)
                for own in of_robot.values()]  # fmt: skip
        arrow = _arrow(informed, made, [n not in outside and bool(of_robot[n]) for n in names])
        found = arrow.solved(between_robots)
        K = np.array([i.widened for i in made])
        robots_V, model_V = covariances(arrow, found, K, between_robots, told)
        # What the model lacks is the same in all logs of a motion, and does not average out.
        counting_logs = [of_robot[n] if yes else [] for n, yes in zip(names, arrow.counts, strict=True)]
        ratio = motion_ratio(informed, counting_logs, found, between_logs, model_V)
        wider = np.where(design.own, 1.0, np.sqrt(ratio))
        lacking = model_V * wider * wider[:, None] - model_V
        robots_V, model_V = robots_V + found.F @ lacking @ np.swapaxes(found.F, 1, 2), model_V + lacking
        # What a term is not shaped like leans on every robot's parameters alike.
        robots_V = robots_V + design.structure_variance
        model_V = model_V + design.structure_variance[: model_V.shape[0], : model_V.shape[1]]
        own = [own_answer(i, design.rank) if of_robot[n] else None for i, n in zip(made, names, strict=True)]
        doubt = np.diag(design.structure_variance)[: design.rank]
    unseen = np.full(design.rank, np.nan), np.full((design.rank, design.rank), np.nan)
    pooled = []
    for r, name in enumerate(names):
        own_beta, own_covariance = own[r] or unseen
        pooled.append(
            PooledRobot(name, len(of_robot[name]), found.x[r], robots_V[r], found.seen, own_beta,
                        np.sqrt(np.diag(own_covariance) + doubt), found.u[r], np.sqrt(found.variance_u[r]), made[r])
        )  # fmt: skip
    mean, covariance = _hidden(found.mu, model_V, found)
    kinds = _kinds(design, informed.scales, between_robots, between_logs, told, evidence)
    return PooledFleet(
        design, mean, covariance, kinds, tuple(pooled), outside, between_robots, between_logs, told, informed
    )  # fmt: skip


def _arrow(informed: Informed, robots: Sequence[Information], counts: Sequence[bool]) -> Arrow:
    design = informed.design
    return Arrow.of(robots, design.ways * informed.scales, design.group_of, design.rank, counts)


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
