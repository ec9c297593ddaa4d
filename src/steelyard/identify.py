"""`identify`: a robot and its logs in, a physically possible model with error bars and scores out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.assessment.score import Score, score_models
from steelyard.assessment.verdict import Verdict, judge
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.nominal_prior import nominal_prior
from steelyard.estimation.registry import make_estimator, make_physical
from steelyard.estimation.rounding import Change, rounding_shift, widened
from steelyard.estimation.significance import fit_significant
from steelyard.friction.known import Given, known_curves, remaining_terms, with_known_friction
from steelyard.friction.separable import Shapes
from steelyard.friction.separable import fit_shapes as fitted_shapes
from steelyard.identification_terms import identification_terms
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Scheme, make_scheme, scheme_text
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.signals.finding import Finding
from steelyard.signals.log import Log
from steelyard.signals.mounted import as_logged
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare
from steelyard.signals.source import LogFile, Source, first_piece, pieces_of
from steelyard.tune import Tuning, tuned

if TYPE_CHECKING:
    from steelyard.check import Check


@dataclass(frozen=True)
class Settings:
    """All that decides an identification besides the robot and the logs; stored with the result."""

    scheme: str = "dynamic"
    estimator: str = "wls"
    physical: bool = True
    prior: str = "nominal"
    preparation: Preparation = field(default_factory=Preparation)
    score_cutoff: float | None = None
    significant: bool = False
    fit_shapes: bool = False
    known_friction: tuple[str, ...] = ()


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
    # With `significant`: the free fit without the parameters that the data do not support, and how it predicts.
    reduced: Estimate | None = None
    reduced_validation: tuple[Score, ...] = ()
    # With `tune`: what was tried on the identification logs, and chosen.
    tuning: Tuning | None = None
    # With `fit_shapes`: the speeds at which dry friction bends, as they were found.
    shapes: Shapes | None = None
    # The beginning of every log that was identified from, for the check.
    beginnings: tuple[tuple[str, Log], ...] = ()

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

    def to_c(self, path: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
        """Write inverse dynamics, gravity and mass matrix as C99, a .c file and its header; returns both paths."""
        from steelyard.export import model_to_c

        return model_to_c(self.model, path, name)

    @cached_property
    def checks(self) -> tuple[tuple[str, Check], ...]:
        """What `check` says of the logs that were identified from (of the first piece of those that are streamed)."""
        from steelyard.check import check_log

        own = replace(self.settings.preparation, cutoff=self.cutoff)
        return tuple((name, check_log(self.robot, log, self.base.terms, own)) for name, log in self.beginnings)

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
    scheme: str | Scheme = "dynamic",
    estimator: str = "wls",
    physical: bool = True,
    prior: str = "nominal",
    preparation: Preparation | None = None,
    score_cutoff: float | None = None,
    significant: bool = False,
    tune: bool = False,
    fit_shapes: bool = False,
    known_friction: Given | None = None,
    names: Sequence[str] = (),
    validate_names: Sequence[str] = (),
) -> Identification:
    """Find the parameters of a robot from one log or several, and judge them on others.

    Args:
        robot: the robot; its nominal inertias serve as prior for what the motion cannot show.
        log: what to identify from.
        validate: logs to judge by; they take no part in any choice.
        terms: joint terms (default: rotor, viscous, smoothed Coulomb, offset), by name or as objects.
        scheme: how the physics is written: "dynamic" (τ = Y θ), "filtered-dynamic", "momentum", "energy", "power" or
            "filtered-power", with options as in "filtered-dynamic:cutoff=9.11,order=2", or as an object.
        estimator: "ols", "wls", "huber", "bisquare", "tls", "rtls", "rls" or "ridge" (this one with physical=False).
        physical: whether the result must be physically possible (the default); otherwise it is the free fit.
        prior: "nominal" (the description's inertias where they are given and possible) or "none".
        preparation: filter, derivatives, masks; the defaults choose from the identification logs alone.
        score_cutoff: Hz of the scores' own filter; default: the fit's cut-off.
        significant: also take away, one by one, the base parameters that the data do not support. With
            `physical=False` the reduced fit is what is delivered; a physically possible model keeps all of them,
            since no body has combinations of exactly zero, and the reduced fit stands beside it as `reduced`.
        tune: choose the fit's cut-off, the smoothing of dry friction and the source of the velocity by
            cross-validation on the identification logs (of long ones, on their beginning); see `steelyard.tune`.
        fit_shapes: also find, from the identification logs, the speeds at which dry friction bends: the Stribeck speed
            and the smoothing of the sign, joint by joint; see `steelyard.friction.separable`.
        known_friction: curves that were measured before, by joint (`measure_friction`, or functions of velocity). They
            are taken off the torque, and the model has them as tables; of the default terms, friction of these joints
            is left out.
    """
    written = make_scheme(scheme)
    if prior not in ("nominal", "none"):
        raise UnknownNameError("prior", prior, ("nominal", "none"))
    logs: list[Source] = [log] if isinstance(log, Log | LogFile) else list(log)
    if not logs:
        raise SteelyardError("There is no log to identify from.")
    beginnings = [first_piece(one) for one in logs]
    robot = as_logged(robot, beginnings)
    _check_torque(beginnings)
    known_curve = known_curves(robot, known_friction)
    if known_curve and (tune or fit_shapes):
        raise SteelyardError("tune and fit_shapes look for friction themselves; leave them or the known friction out.")
    if known_curve and terms is None:
        terms = remaining_terms(robot, known_curve)
    settings = Settings(
        scheme_text(written),
        estimator,
        physical,
        prior,
        preparation or Preparation(),
        score_cutoff,
        significant,
        fit_shapes,
        tuple(known_curve),
    )
    tuning = tuned(robot, beginnings, terms, settings.preparation, score_cutoff, written) if tune else None
    if tuning is not None:
        best = tuning.chosen
        used = replace(settings.preparation, cutoff=best.cutoff_hz, velocity=best.velocity)
        settings = replace(settings, preparation=used)
    cutoff = chosen_cutoff(beginnings, settings.preparation)
    bound = identification_terms(robot, terms, tuning.chosen.smoothing if tuning is not None else 1.0)
    shapes: Shapes | None = None

    def motions(change: Change = lambda piece: piece) -> Iterator[Motion]:
        for one in logs:
            for piece in pieces_of(one):
                yield from prepare(change(piece), settings.preparation, cutoff)

    if fit_shapes:
        shapes = fitted_shapes(bound, motions, settings.preparation.mask)
        bound = shapes.terms
    base = base_parameters(robot, bound)
    dynamics = Dynamics(robot, bound)

    def refit(change: Change) -> Array:
        rows = written.data(dynamics, base, lambda: motions(change), settings.preparation.mask, known_curve or None)
        return make_estimator(estimator).fit(rows, base, known).beta

    data = written.data(dynamics, base, motions, settings.preparation.mask, known_curve or None)
    known = nominal_prior(robot, bound) if prior == "nominal" else None
    free, chosen = _estimates(data, base, known, settings)
    reduced = fit_significant(make_estimator(estimator), data, base, known) if significant else None
    if reduced is not None and not physical:
        chosen = reduced
    shift = rounding_shift(beginnings, cutoff, free.beta, refit)
    if shift is not None:
        free, chosen = widened(free, shift), widened(chosen, shift)

    def whole(estimate: Estimate) -> Model:
        return with_known_friction(Model(robot, bound, estimate.theta), known_curve)

    model = whole(chosen)
    at = score_cutoff or (tuning.score_cutoff if tuning is not None else cutoff)

    def judged(
        some: Sequence[Source], called: Sequence[str], kind: str, **given: Model | None
    ) -> dict[str, tuple[Score, ...]]:
        """The scores of every model on every log; those of a model that is None are none."""
        models = {key: m for key, m in given.items() if m is not None}
        each = [
            score_models(tuple(models.values()), x, settings.preparation, cutoff, at, n)
            for x, n in zip(some, _labels(called, some, kind), strict=True)
        ]
        return dict.fromkeys(given, ()) | {key: tuple(s[k] for s in each) for k, key in enumerate(models)}

    nominal = Model.nominal(robot) if robot.has_inertia else None
    seen = judged(logs, names, "log", model=model, nominal=None if validate else nominal)
    unseen = judged(
        validate,
        validate_names,
        "validation",
        model=model,
        free=whole(free),
        nominal=nominal,
        reduced=None if reduced is None else whole(reduced),
    )
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
        identification=seen["model"],
        validation=unseen["model"],
        free_validation=unseen["free"],
        nominal=(unseen if validate else seen)["nominal"],
        reduced=reduced,
        reduced_validation=unseen["reduced"],
        tuning=tuning,
        shapes=shapes,
        beginnings=tuple(zip(_labels(names, logs, "log"), beginnings, strict=True)),
    )


def _check_torque(logs: Sequence[Log]) -> None:
    for one in logs:
        if one.tau is not None and not np.any(one.tau):
            name = one.meta.get("source", "The log")
            raise LogError(f"{name}: the torque is zero throughout; nothing can be weighed.")


def _estimates(
    data: RegressionData, base: BaseParameters, prior: Prior | None, settings: Settings
) -> tuple[Estimate, Estimate]:
    """The free fit, and the one that is delivered."""
    if settings.estimator == "physical":
        raise SteelyardError("Physical consistency is a choice of its own (--physical); name the estimator beneath it.")
    plain = make_estimator(settings.estimator)
    if not settings.physical:
        free = plain.fit(data, base, prior)
        return free, free
    if settings.estimator not in ("ols", "wls", "huber", "bisquare", "tls", "rtls", "rls"):
        raise SteelyardError(f"'{settings.estimator}' has no physically consistent form; add --free, or use wls.")
    return make_physical(settings.estimator).fit_both(data, base, prior)


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
