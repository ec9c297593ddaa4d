"""`identify`: a robot and its logs in, a physically possible model with error bars and scores out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.assessment.score import Score, score
from steelyard.assessment.verdict import Verdict, judge
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.registry import make_estimator
from steelyard.identification_terms import identification_terms
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import RegressionData
from steelyard.regression.observe import observe
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.signals.finding import Finding
from steelyard.signals.log import Log
from steelyard.signals.mounted import as_logged
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare
from steelyard.signals.source import LogFile, Source, first_piece, pieces_of

SCHEMES = ("dynamic",)


@dataclass(frozen=True)
class Settings:
    """All that decides an identification besides the robot and the logs; stored with the result."""

    scheme: str = "dynamic"
    estimator: str = "wls"
    physical: bool = True
    prior: str = "nominal"
    preparation: Preparation = field(default_factory=Preparation)
    score_cutoff: float | None = None


@dataclass(frozen=True, eq=False)
class Identification:
    """What was found: the model, its base parameters with error bars, and how well it predicts."""

    robot: Robot
    settings: Settings
    base: BaseParameters
    estimate: Estimate
    free: Estimate
    model: Model
    cutoff: float
    score_cutoff: float
    singular_values: Array
    findings: tuple[tuple[str, Finding], ...]
    velocity: str
    identification: tuple[Score, ...]
    validation: tuple[Score, ...]
    free_validation: tuple[Score, ...]
    nominal: tuple[Score, ...]

    @property
    def condition_number(self) -> float:
        """cond₂ of the base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm."""
        least = float(self.singular_values[-1])
        return float(self.singular_values[0] / least) if least > 0.0 else float("inf")

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Joint torques of a motion, `(samples, joints)`."""
        return self.model.torque(q, dq, ddq)

    def simulate(self, *arguments: Any, **options: Any) -> Any:
        """`steelyard.simulate` with the identified model."""
        from steelyard.simulation import simulate

        return simulate(self.model, *arguments, **options)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report, one self-contained HTML page."""
        from steelyard.files import write_whole
        from steelyard.report.identification import identification_report

        write_whole(path, identification_report(self))

    def to_urdf(self, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Write the model as URDF; what URDF cannot hold goes into a sidecar beside it, and is returned in words."""
        from steelyard.export import model_to_sidecar, model_to_urdf, sidecar_path

        notes = model_to_urdf(self.model, path, source)
        model_to_sidecar(self.model, sidecar_path(path))
        return notes

    def to_mjcf(self, path: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the model as MJCF; returns in words what it cannot hold."""
        from steelyard.export import model_to_mjcf

        return model_to_mjcf(self.model, path)

    def to_c(self, folder: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
        """Write inverse dynamics, gravity and mass matrix as C99; returns the header and the source."""
        from steelyard.export import model_to_c

        return model_to_c(self.model, folder, name)

    @cached_property
    def verdict(self) -> Verdict:
        return judge(self)

    @property
    def physically_consistent(self) -> bool:
        links = 10 * len(self.robot.links)
        bounds = self.model.terms.lower - 1e-12 <= self.model.theta[links:]
        return bool(np.all(smallest_pseudo_eigenvalues(self.model.theta[:links]) > 0.0) and np.all(bounds))


def identify(
    robot: Robot,
    log: Source | Sequence[Source],
    validate: Sequence[Source] = (),
    *,
    terms: Sequence[str | Term] | Terms | None = None,
    scheme: str = "dynamic",
    estimator: str = "wls",
    physical: bool = True,
    prior: str = "nominal",
    preparation: Preparation | None = None,
    score_cutoff: float | None = None,
    names: Sequence[str] = (),
    validate_names: Sequence[str] = (),
) -> Identification:
    """Find the parameters of a robot from one log or several, and judge them on others.

    Args:
        robot: the robot; its nominal inertias serve as prior for what the motion cannot show.
        log: what to identify from.
        validate: logs to judge by; they take no part in any choice.
        terms: joint terms (default: rotor, viscous, smoothed Coulomb, offset), by name or as objects.
        scheme: how the physics is written; "dynamic" is τ = Y θ.
        estimator: "ols", "wls", "huber", "bisquare", "tls" or "ridge".
        physical: whether the result must be physically possible (the default); otherwise it is the free fit.
        prior: "nominal" (the description's inertias where they are given and possible) or "none".
        preparation: filter, derivatives, masks; the defaults choose from the identification logs alone.
        score_cutoff: Hz of the scores' own filter; default: the fit's cut-off.
    """
    if scheme not in SCHEMES:
        raise UnknownNameError("scheme", scheme, SCHEMES)
    if prior not in ("nominal", "none"):
        raise UnknownNameError("prior", prior, ("nominal", "none"))
    logs: list[Source] = [log] if isinstance(log, Log | LogFile) else list(log)
    if not logs:
        raise SteelyardError("There is no log to identify from.")
    beginnings = [first_piece(one) for one in logs]
    robot = as_logged(robot, beginnings)
    _check_torque(beginnings)
    settings = Settings(scheme, estimator, physical, prior, preparation or Preparation(), score_cutoff)
    cutoff = chosen_cutoff(beginnings, settings.preparation)
    bound = identification_terms(robot, terms)
    base = base_parameters(robot, bound)
    dynamics = Dynamics(robot, bound)

    def motions() -> Iterator[Motion]:
        for one in logs:
            for piece in pieces_of(one):
                yield from prepare(piece, settings.preparation, cutoff)

    data = observe(dynamics, base, motions, settings.preparation.mask)
    known = _prior(robot, bound, prior)
    free, chosen = _estimates(data, base, known, settings)
    model = Model(robot, bound, chosen.theta)
    at = score_cutoff or cutoff

    def judged(m: Model, some: Sequence[Source], called: Sequence[str], kind: str) -> tuple[Score, ...]:
        labels = _labels(called, some, kind)
        return tuple(score(m, x, settings.preparation, cutoff, at, n) for x, n in zip(some, labels, strict=True))

    nominal = Model.nominal(robot) if robot.has_inertia else None
    return Identification(
        robot=robot,
        settings=settings,
        base=base,
        estimate=chosen,
        free=free,
        model=model,
        cutoff=cutoff,
        score_cutoff=at,
        singular_values=_singular_values(data, base, free),
        findings=_findings(_labels(names, logs, "log"), beginnings),
        velocity=_velocities([m for one in beginnings for m in prepare(one, settings.preparation, cutoff)]),
        identification=judged(model, logs, names, "log"),
        validation=judged(model, validate, validate_names, "validation"),
        free_validation=judged(Model(robot, bound, free.theta), validate, validate_names, "validation"),
        nominal=judged(nominal, validate or logs, validate_names or names, "log") if nominal is not None else (),
    )


def _check_torque(logs: Sequence[Log]) -> None:
    for one in logs:
        if one.tau is not None and not np.any(one.tau):
            name = one.meta.get("source", "The log")
            raise LogError(f"{name}: the torque is zero throughout; nothing can be weighed.")


def _prior(robot: Robot, bound: Terms, prior: str) -> Prior | None:
    """The description's inertias, link by link where they are given and possible; nothing is known of the terms."""
    if prior == "none":
        return None
    theta, known = np.zeros(10 * len(robot.links) + len(bound)), np.zeros(10 * len(robot.links) + len(bound), bool)
    for k, link in enumerate(robot.links):
        if link.inertia is not None and smallest_pseudo_eigenvalues(link.inertia)[0] > 0.0:
            theta[10 * k : 10 * k + 10] = link.inertia
            known[10 * k : 10 * k + 10] = True
    return Prior(theta, tuple(known.tolist())) if known.any() else None


def _estimates(
    data: RegressionData, base: BaseParameters, prior: Prior | None, settings: Settings
) -> tuple[Estimate, Estimate]:
    """The free fit, and the one that is delivered."""
    if settings.estimator == "physical":
        raise SteelyardError("Physical consistency is a choice of its own (--physical); name the estimator beneath it.")
    free = make_estimator(settings.estimator).fit(data, base, prior)
    if not settings.physical:
        return free, free
    if settings.estimator not in ("ols", "wls", "huber", "bisquare"):
        raise SteelyardError(f"'{settings.estimator}' has no physically consistent form; add --free, or use wls.")
    fit = make_estimator("physical", weighting=settings.estimator)
    return free, fit.fit(data, base, prior)


def _labels(given: Sequence[str], logs: Sequence[Source], kind: str) -> list[str]:
    """A name for every log: those given, then numbers."""
    return [*given[: len(logs)], *(f"{kind} {k + 1}" for k in range(len(given), len(logs)))]


def _singular_values(data: RegressionData, base: BaseParameters, free: Estimate) -> Array:
    """Of the base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm; the largest first."""
    r = data.factor().joined(1.0 / np.maximum(free.spread, 1e-300), base.independent)[:-1, :-1]
    lengths = np.linalg.norm(r, axis=0)
    return np.asarray(np.linalg.svd(r / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False), dtype=np.float64)


def _findings(names: Sequence[str], logs: Sequence[Log]) -> tuple[tuple[str, Finding], ...]:
    """What reading each log brought to light."""
    return tuple((name, f) for name, log in zip(names, logs, strict=True) for f in log.findings)


def _velocities(motions: Sequence[Motion]) -> str:
    kinds = sorted({m.velocity for m in motions})
    return " and ".join(kinds)


__all__ = ["Identification", "Settings", "identify"]
