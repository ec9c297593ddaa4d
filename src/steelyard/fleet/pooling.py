"""`pool`: fits all robots of one type together, so that robots with little data use the information of the others.

All robots share the links of their type. Friction, offsets, gains and loads belong to each robot; they come from a
population whose mean and variance are estimated for every kind and joint. A robot with many good logs keeps its own
values; one with a single poor log is shrunk towards the mean, and its error bars include this. Variation between logs
of one robot (warmth, grease, a missing term) is a variance as well, so twenty logs that differ are worth less than
twenty independent ones. The theory is in docs/theory/fleets.md.
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
from steelyard.fleet._arrowhead import Arrowhead, Solution, covariances, fit_alone, log_variance
from steelyard.fleet._information import Information, InformationBuilder
from steelyard.fleet._variances import estimate_variances, log_information, motion_ratio, sample_logs
from steelyard.fleet.effects import LINKS_KIND, EffectGroup, FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# Smallest log likelihood ratio (doubled) at which robots differ significantly. Chance exceeds it once in 400 (half of a
# χ² of one degree of freedom, since no variance is negative); there are dozens of kinds and joints.
_SIGNIFICANT = 7.9
# Smallest difference of links, as a part of the torque, that is worth a note.
_MIN_LINK_STD = 0.005


@dataclass(frozen=True)
class KindStd:
    """Difference between robots of one type in one kind of parameter on one joint.

    Attributes:
        kind: "links", "load mass" and so on, "gain", or the kind of a term.
        joint: Name of the joint (of the link for loads).
        std: Standard deviation between robots.
        error: Standard error of `std`.
        log_std: Standard deviation between logs of one robot, beyond their error bars.
        unit: Unit of these; "1" for parts of the joint's torque.
        shown: Whether the difference is significant.
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
    """A robot estimated from its own logs and from those of other robots of its type.

    Attributes:
        robot: Name of the robot.
        logs: Number of logs used.
        x: Coordinates: base parameters, then the gain of each joint's torque relative to the model.
        x_covariance: Covariance of `x`.
        identifiable: Base parameters that at least one robot identifies.
        own_beta: Base parameters from its own logs alone; NaN if not identifiable.
        own_errors: Standard errors of `own_beta`.
        effects: Deviations from the mean robot in the order of `FleetDesign.effects_matrix`, as parts of the torque.
        effects_std: Standard errors of `effects`.
        info: Information of its logs together.
    """

    robot: str
    logs: int
    x: Array
    x_covariance: Array
    identifiable: NDArray[np.bool_]
    own_beta: Array
    own_errors: Array
    effects: Array
    effects_std: Array
    info: Information

    @cached_property
    def beta(self) -> Array:
        """Base parameters; NaN if no robot identifies them."""
        return np.asarray(np.where(self.identifiable, self.x[: len(self.identifiable)], np.nan))

    @cached_property
    def covariance(self) -> Array:
        """Covariance of `beta`."""
        p = len(self.identifiable)
        return np.asarray(np.where(np.outer(self.identifiable, self.identifiable), self.x_covariance[:p, :p], np.nan))

    @property
    def gain(self) -> Array:
        """Relative excess of each joint's torque over the model."""
        return self.x[len(self.identifiable) :]

    @property
    def gain_errors(self) -> Array:
        """Standard errors of the gains."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.x_covariance)[len(self.identifiable) :], 0.0)))

    @property
    def errors(self) -> Array:
        """Standard errors of the base parameters; infinite if no robot identifies them."""
        return np.asarray(np.where(np.isfinite(self.beta), np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf))

    @property
    def sharper(self) -> Array:
        """Ratio of the error bars by its own logs alone to the pooled ones; infinite if its logs identify nothing."""
        own = np.where(np.isfinite(self.own_errors), self.own_errors, np.inf)
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(self.errors), own / self.errors, 1.0)

    def estimate(self, base: BaseParameters, prior: Prior | None = None, possible: bool = True) -> Estimate:
        """Convert the pooled parameters to an estimate, as estimators return it.

        Args:
            base: Base parameters of the design.
            prior: Prior for parameters that no motion identifies.
            possible: Whether to make the parameters physically possible.
        """
        return _as_estimate(self.beta, self.covariance, base, prior, possible, self.robot)


@dataclass(frozen=True, eq=False)
class PooledFleet:
    """The robots of one type, fitted together.

    Attributes:
        design: Base parameters and effects.
        beta: Base parameters of the mean robot; NaN if no robot identifies them.
        covariance: Covariance of `beta`.
        kinds: Differences between robots, by kind and joint.
        robots: The robots, in the order of their names.
        excluded: Robots that do not contribute to the mean and the variances.
        variances: Variances between robots by group of effects, as squared parts of the torque.
        log_variances: Variances between logs of one robot.
        degrees: Degrees of freedom of `variances`.
        builder: Computes the information of a log.
    """

    design: FleetDesign
    beta: Array
    covariance: Array
    kinds: tuple[KindStd, ...]
    robots: tuple[PooledRobot, ...]
    excluded: tuple[str, ...]
    variances: Array
    log_variances: Array
    degrees: Array
    builder: InformationBuilder

    @cached_property
    def by_name(self) -> dict[str, PooledRobot]:
        """The robots by name."""
        return {r.robot: r for r in self.robots}

    @property
    def errors(self) -> Array:
        """Standard errors of the mean robot's base parameters."""
        return np.asarray(np.where(np.isfinite(self.beta), np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf))

    def information(self, logs: Sequence[LogFactors]) -> Information:
        """Return the information of each of several usable logs.

        Args:
            logs: All logs of one robot; the most frequent load is its usual one.
        """
        return log_information(self.builder, logs)

    def sharper(self, own: bool | None = None) -> float:
        """Return the median ratio of own error bars to pooled ones, over robots and parameters.

        Args:
            own: True for parameters that belong to each robot, False for those of the links, None for all.
        """
        mine = np.ones(self.design.rank, dtype=bool) if own is None else self.design.own == own
        values = np.concatenate([r.sharper[mine] for r in self.robots if r.logs] or [np.ones(1)])
        values = values[np.isfinite(values)]
        return float(np.median(values)) if len(values) else float("inf")

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the result: links that differ significantly."""
        return tuple(
            f"The links of the robots differ: what '{k.joint}' moves changes its torque by {100.0 * k.std:.2g} % from "
            "robot to robot."
            for k in self.kinds
            if k.kind == LINKS_KIND and k.shown and k.std > _MIN_LINK_STD
        )

    def estimate(self, base: BaseParameters, prior: Prior | None = None, possible: bool = True) -> Estimate:
        """Convert the mean robot to an estimate, as estimators return it.

        Args:
            base: Base parameters of the design.
            prior: Prior for parameters that no motion identifies.
            possible: Make it physically possible.
        """
        return _as_estimate(self.beta, self.covariance, base, prior, possible, "Mean robot")


def pool(
    design: FleetDesign,
    logs: Sequence[LogFactors],
    robots: Sequence[str] = (),
    *,
    excluded: Collection[str] = (),
    previous: PooledFleet | None = None,
) -> PooledFleet:
    """Fit the robots of one type together.

    Args:
        design: Base parameters and effects.
        logs: Logs of all robots, with `robot` and `load` from the fleet's table; unusable logs are ignored.
        robots: Names of all robots, including those without logs; robots of `logs` are added.
        excluded: Robots that must not influence the mean robot and the variances.
        previous: An earlier fit of these logs; its noise is used again, and its variances are the start of the search.
    """
    usable = [log for log in logs if log.factor is not None]
    names = sorted({*robots, *(log.robot for log in logs)})
    if not usable:
        raise SteelyardError("None of the logs of this robot type could be used, so its robots cannot be estimated.")
    outside = tuple(sorted(set(excluded) & set(names)))
    if not any(log.robot not in outside for log in usable):
        raise SteelyardError("Every robot that has a log is excluded; include at least one of this type.")
    with one_blas_thread():
        of_robot: dict[str, list[LogFactors]] = {name: [] for name in names}
        for log in usable:
            of_robot[log.robot].append(log)
        counting = {n: of_robot[n] for n in names if n not in outside}
        sample = sample_logs(counting)
        builder = (
            InformationBuilder(design, [x for own in sample.values() for x in own])
            if previous is None
            else previous.builder
        )
        start = None if previous is None else (previous.variances, previous.log_variances)
        between_robots, between_logs, degrees, evidence = estimate_variances(builder, sample, start)
        made = [log_information(builder, own, between_logs).together if own else Information.none(design.size)
                for own in of_robot.values()]  # fmt: skip
        arrow = _arrow(builder, made, [n not in outside and bool(of_robot[n]) for n in names])
        solution = arrow.solve(between_robots)
        K = np.array([i.widened for i in made])
        robots_V, mean_V = covariances(arrow, solution, K, between_robots, degrees)
        # Structural error is the same in all logs of a motion, so it does not average out.
        counting_logs = [of_robot[n] if yes else [] for n, yes in zip(names, arrow.counts, strict=True)]
        ratio = motion_ratio(builder, counting_logs, solution, between_logs, mean_V)
        wider = np.where(design.own, 1.0, np.sqrt(ratio))
        structural = mean_V * wider * wider[:, None] - mean_V
        robots_V, mean_V = robots_V + solution.F @ structural @ np.swapaxes(solution.F, 1, 2), mean_V + structural
        # A wrong shape of a term affects the parameters of all robots alike.
        robots_V = robots_V + design.structure_variance
        mean_V = mean_V + design.structure_variance[: mean_V.shape[0], : mean_V.shape[1]]
        own = [fit_alone(i, design.rank) if of_robot[n] else None for i, n in zip(made, names, strict=True)]
        doubt = np.diag(design.structure_variance)[: design.rank]
    unseen = np.full(design.rank, np.nan), np.full((design.rank, design.rank), np.nan)
    pooled = []
    for r, name in enumerate(names):
        own_beta, own_covariance = own[r] or unseen
        pooled.append(
            PooledRobot(name, len(of_robot[name]), solution.x[r], robots_V[r], solution.identifiable, own_beta,
                        np.sqrt(np.diag(own_covariance) + doubt), solution.u[r], np.sqrt(solution.variance_u[r]),
                        made[r])
        )  # fmt: skip
    mean, covariance = _with_nan(solution.mu, mean_V, solution)
    kinds = _kinds(design, builder.scales, between_robots, between_logs, degrees, evidence)
    return PooledFleet(
        design, mean, covariance, kinds, tuple(pooled), outside, between_robots, between_logs, degrees, builder
    )  # fmt: skip


def _arrow(builder: InformationBuilder, robots: Sequence[Information], counts: Sequence[bool]) -> Arrowhead:
    design = builder.design
    return Arrowhead.of(robots, design.effects_matrix * builder.scales, design.group_of, design.rank, counts)


def _with_nan(beta: Array, V: Array, solution: Solution) -> tuple[Array, Array]:
    """Set what no robot identifies to NaN."""
    beta, V = np.where(solution.identifiable, beta, np.nan), 0.5 * (V + V.T)
    V[~solution.identifiable], V[:, ~solution.identifiable] = np.nan, np.nan
    return beta, V


def _kinds(
    design: FleetDesign, scales: Array, v: Array, w: Array, degrees: Array, evidence: Array
) -> tuple[KindStd, ...]:
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
                0.5 * std * float(np.sqrt(log_variance(degrees[g]))),
                float(np.sqrt(w[g])) * scale,
                unit,
                bool(evidence[g] > _SIGNIFICANT),
            )
        )
    return tuple(out)


def _unit(design: FleetDesign, scales: Array, members: NDArray[np.intp], group: EffectGroup) -> tuple[float, str]:
    """Return the factor from parts of the torque to the unit of the group's parameter, and this unit."""
    if len(members) == 1 and members[0] < design.rank and group.kind != LINKS_KIND:
        return float(scales[members[0]]), design.units[members[0]]
    return 1.0, "1"


def _as_estimate(
    beta: Array, covariance: Array, base: BaseParameters, prior: Prior | None, possible: bool, name: str
) -> Estimate:
    if not np.all(np.isfinite(beta)):
        hidden = ", ".join(n for n, b in zip(base.names, beta, strict=True) if not np.isfinite(b))
        raise SteelyardError(
            f"{name}: no log of this robot type identifies {hidden}, so no model can be made; add logs that move more."
        )
    free = Estimate(base, beta, covariance, nearest_theta(base, beta, prior), np.zeros(0), 0.0)
    return nearest_possible(free, prior) if possible else free
