"""`FoundModel`: all that the logs of one model's robots tell, and each robot as a model that can exist."""

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
from steelyard.fleet.mapped import LogFactors
from steelyard.fleet.outliers import JudgedFleet, judge_fleet
from steelyard.fleet.pooling import PooledFleet
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, file_name
from steelyard.ground.progress import tell_progress
from steelyard.regression.base_parameters import BaseParameters


@dataclass(frozen=True, eq=False)
class FoundModel:
    """The robots of one model, together.

    Attributes:
        name: of the model.
        base: its base parameters.
        logs: of its robots, those that could not be used among them.
        judged: the robots, each by its own logs and by those of its kin; what changes, and what does not belong.
    """

    name: str
    base: BaseParameters
    logs: tuple[LogFactors, ...]
    judged: JudgedFleet

    @property
    def pooled(self) -> PooledFleet:
        """The robots, each by its own logs and by those of its kin."""
        return self.judged.fleet

    @property
    def drift(self) -> FleetDrift:
        """What changes in them."""
        return self.judged.drift

    @property
    def mean(self) -> Estimate | None:
        """The mean robot, physically possible; None where `unmade` says why."""
        return self._made[0]

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Each robot that has a log, physically possible: what its logs and its kin do not show is as in the mean
        robot."""
        return self._made[1]

    @property
    def unmade(self) -> dict[str, str]:
        """Why there is no model of a robot that has logs, by its name; of the mean robot by ""."""
        return self._made[2]

    @cached_property
    def _made(self) -> tuple[Estimate | None, dict[str, Estimate], dict[str, str]]:
        """The mean robot is close to each of the others: starting there takes milliseconds a robot."""
        try:
            mean = self.pooled.estimate(self.base, nominal_prior(self.base.robot, self.base.terms))
        except SteelyardError as why:
            return None, {}, {"": str(why)}
        prior, out, unmade = Prior(mean.theta), {}, {}
        for k, robot in enumerate(self.pooled.robots):
            if k % 16 == 0:
                tell_progress("Making the models", k / len(self.pooled.robots))
            if robot.logs:
                try:
                    free = robot.estimate(self.base, prior, possible=False)
                    out[robot.robot] = nearest_possible(free, prior, shares=False, close=True)
                except SteelyardError as why:
                    unmade[robot.robot] = f"Robot '{robot.robot}' has no model: {why}"
        return mean, out, unmade

    def model(self, estimate: Estimate) -> Model:
        """The model of an `estimate`: the mean robot's, or one robot's."""
        return Model(self.base.robot, self.base.terms, estimate.theta)

    def squares(self, log: LogFactors, x: Array) -> Array:
        """Σu² of each equation of a usable `log` for a robot with the coordinates `x` (base parameters, then gains)."""
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


def find_model(
    name: str,
    base: BaseParameters,
    logs: Sequence[LogFactors],
    robots: Sequence[str] = (),
    structure_std: Sequence[float] = (),
) -> FoundModel:
    """All that the factors of a model's logs tell.

    Args:
        name: of the model.
        base: its base parameters.
        logs: of its robots, as the fleet's table states them, in order.
        robots: their names.
        structure_std: of each base parameter, how far it hangs on the choice of the terms.
    """
    usable = [log for log in logs if log.factor is not None]
    if not usable:
        raise SteelyardError(f"Model '{name}': none of its {len(logs)} logs could be used; nothing is said of it.")
    design = FleetDesign.of(base, [e.name for e in usable[0].equations], structure_std)
    return FoundModel(name, base, tuple(logs), judge_fleet(design, logs, robots))


def file_names(names: Sequence[str]) -> list[str]:
    """What the files of `names`, of robots and then of models, are called, in their order: no two alike, on systems
    that do not tell capital letters from small ones either."""
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


def model_files(found: FoundModel, called: Mapping[str, str], source: Path | None) -> dict[str, Content]:
    """A URDF and its sidecar for the mean robot and for every robot of a model.

    Args:
        found: the model.
        called: what the files of each robot are called, and (by "") those of the mean robot.
        source: the URDF of the model, of which all but the numbers is kept; None: there is none.
    """
    out: dict[str, Content] = {}
    mean = {} if found.mean is None else {"": found.mean}
    for name, estimate in {**mean, **found.estimates}.items():
        model, stem = found.model(estimate), called[name]
        write: Callable[[Path], object] = partial(_write_urdf, model, source)
        out[f"models/{stem}.urdf"] = write
        out[f"models/{stem}.steelyard.json"] = partial(model_to_sidecar, model)
    return out


def _write_urdf(model: Model, source: Path | None, path: Path) -> None:
    model_to_urdf(model, path, source)
