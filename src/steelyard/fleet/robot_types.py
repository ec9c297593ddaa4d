"""`FittedRobotType`: results of one robot type, and a physically possible model of each of its robots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.possible.physical import nearest_possible
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.export.sidecar import model_to_sidecar
from steelyard.export.urdf import model_to_urdf
from steelyard.fleet.drift import FleetDrift
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.outliers import JudgedFleet, judge_fleet
from steelyard.fleet.pooling import PooledFleet
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, file_name
from steelyard.ground.progress import report_progress
from steelyard.regression.base_parameters import BaseParameters


@dataclass(frozen=True, eq=False)
class FittedRobotType:
    """The robots of one type, fitted together.

    Attributes:
        name: Name of the type.
        base: Base parameters of the type.
        logs: Logs of its robots, including unusable ones.
        judged: The pooled robots with changes over time and outliers.
    """

    name: str
    base: BaseParameters
    logs: tuple[LogFactors, ...]
    judged: JudgedFleet

    @property
    def pooled(self) -> PooledFleet:
        """The robots, pooled."""
        return self.judged.fleet

    @property
    def drift(self) -> FleetDrift:
        """Changes over time."""
        return self.judged.drift

    @property
    def mean(self) -> Estimate | None:
        """The mean robot, physically possible; None if `fit_errors` has a reason."""
        return self._fits[0]

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Each robot with logs, physically possible; unidentifiable parameters are those of the mean robot."""
        return self._fits[1]

    @property
    def fit_errors(self) -> dict[str, str]:
        """Reasons why a robot with logs has no model, by its name; the mean robot has the name ""."""
        return self._fits[2]

    @cached_property
    def _fits(self) -> tuple[Estimate | None, dict[str, Estimate], dict[str, str]]:
        """Fit the mean robot first: the others are close to it, so that each of them takes milliseconds."""
        try:
            mean = self.pooled.estimate(self.base, nominal_prior(self.base.robot, self.base.terms))
        except SteelyardError as why:
            return None, {}, {"": str(why)}
        prior, out, fit_errors = Prior(mean.theta), {}, {}
        for k, robot in enumerate(self.pooled.robots):
            if k % 16 == 0:
                report_progress("Making the models", k / len(self.pooled.robots))
            if robot.logs:
                try:
                    free = robot.estimate(self.base, prior, possible=False)
                    out[robot.robot] = nearest_possible(free, prior, shares=False, close=True)
                except SteelyardError as why:
                    fit_errors[robot.robot] = f"Robot '{robot.robot}' has no model: {why}"
        return mean, out, fit_errors

    def model(self, estimate: Estimate) -> Model:
        """Return the model of an `estimate` of the mean robot or of one robot."""
        return Model(self.base.robot, self.base.terms, estimate.theta)

    def squares(self, log: LogFactors, x: Array) -> Array:
        """Compute Σu² of each equation.

        Args:
            log: A usable log.
            x: Coordinates of a robot: base parameters, then gains.
        """
        factor = log.factor
        assert factor is not None
        theta = np.zeros(factor.parameters)
        theta[list(self.base.independent)] = x[: self.base.rank]
        gains = 1.0 + x[self.base.rank :]
        left = [
            gain * (r[:, :-1] @ theta[e.columns]) - r[:, -1]
            for gain, e, r in zip(gains, factor.equations, factor.triangles, strict=True)
        ]
        return np.array([float(u @ u) for u in left])


def fit_robot_type(
    name: str,
    base: BaseParameters,
    logs: Sequence[LogFactors],
    robots: Sequence[str] = (),
    structure_std: Sequence[float] = (),
) -> FittedRobotType:
    """Analyse all logs of one robot type.

    Args:
        name: Name of the type.
        base: Base parameters of the type.
        logs: Logs of its robots in the order of the fleet's table.
        robots: Names of the robots.
        structure_std: Standard deviation of each base parameter due to the choice of the terms.
    """
    usable = [log for log in logs if log.factor is not None]
    if not usable:
        raise SteelyardError(f"Robot type '{name}': none of its {len(logs)} logs could be used, so it has no results.")
    design = FleetDesign.of(base, [e.name for e in usable[0].equations], structure_std)
    return FittedRobotType(name, base, tuple(logs), judge_fleet(design, logs, robots))


def file_names(names: Sequence[str]) -> list[str]:
    """Make a file name for each of `names`, in their order; all are different, also if the file system ignores case."""
    taken: set[str] = set()
    out = []
    for name in names:
        plain = made = file_name(name)
        count = 1
        while made.casefold() in taken:
            count += 1
            made = f"{plain}-{count}"
        taken.add(made.casefold())
        out.append(made)
    return out


def robot_type_files(fitted: FittedRobotType, stems: Mapping[str, str], source: Path | None) -> dict[str, Content]:
    """Return the run-folder files of a type: a URDF and a sidecar for the mean robot and for every robot.

    Args:
        fitted: The results of the type.
        stems: Name of the files of each robot, and (by "") of the mean robot.
        source: URDF of the type, in which only the numbers are replaced; None if missing.
    """
    out: dict[str, Content] = {}
    mean = {} if fitted.mean is None else {"": fitted.mean}
    for name, estimate in {**mean, **fitted.estimates}.items():
        model, stem = fitted.model(estimate), stems[name]
        write: Callable[[Path], object] = partial(_write_urdf, model, source)
        out[f"models/{stem}.urdf"] = write
        out[f"models/{stem}.steelyard.json"] = partial(model_to_sidecar, model)
    return out


def _write_urdf(model: Model, source: Path | None, path: Path) -> None:
    model_to_urdf(model, path, source)
