"""`identify`: a robot and its logs in, a physically possible model with error bars and scores out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from steelyard.assessment.score import Score, score_models
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.linear.rounding import Change, rounding_shift, widened
from steelyard.estimation.linear.significance import fit_significant
from steelyard.estimation.possible.reference import nominal_prior
from steelyard.estimation.registry import ESTIMATORS, check_use, fit_both, fit_by_name, make_estimator
from steelyard.friction.known import Given, Rounded, known_curves, remaining_terms, with_known_friction
from steelyard.friction.separable import Shapes
from steelyard.friction.separable import fit_shapes as fitted_shapes
from steelyard.ground.arrays import Array
from steelyard.identification.identification import Identification, Settings
from steelyard.identification.tune import Tuning, tuned
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, identification_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Scheme, make_scheme, scheme_text
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log
from steelyard.signals.mounted import as_logged
from steelyard.signals.prepare import Motion, Preparation, chosen_cutoff, prepare
from steelyard.signals.source import LogFile, Source, first_piece, pieces_of

if TYPE_CHECKING:
    from steelyard.estimation.simulated.control_loop import ControlLoop
    from steelyard.estimation.simulated.experiment import Experiment


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
    controller: str | os.PathLike[str] | ControlLoop | None = None,
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
            "filtered-power", with options as in "filtered-dynamic:cutoff_hz=1.5,order=2", or as an object.
        estimator: any name of `steelyard.estimation.ESTIMATORS`; docs/how-to-choose.md says which is for what.
        physical: whether the result must be physically possible (the default); otherwise it is the free fit.
        prior: "nominal" (the description's inertias where they are given and possible) or "none".
        preparation: filter, derivatives, masks; the defaults choose from the identification logs alone.
        score_cutoff: Hz of the scores' own filter; default: the fit's cut-off.
        significant: also take away, one by one, the base parameters that the data do not support. With
            `physical=False` the reduced fit is what is delivered; a physically possible model keeps all of them,
            since no body has combinations of exactly zero, and the reduced fit stands beside it as `reduced`.
        tune: choose the fit's cut-off, the smoothing of dry friction and the source of the velocity by
            cross-validation on the identification logs (of long ones, on their beginning); see `tune.py`.
        fit_shapes: also find, from the identification logs, the speeds at which dry friction bends: the Stribeck speed
            and the smoothing of the sign, joint by joint; see `steelyard.friction.separable`.
        known_friction: curves that were measured before, by joint (`measure_friction`, or functions of velocity). They
            are taken off the torque, and the model has them as tables; of the default terms, friction of these joints
            is left out.
        controller: what controlled the robot while it was logged: a file (`read_control_loop` says what stands in it)
            or a `ControlLoop`; for estimators that simulate the closed loop.
    """
    written = make_scheme(scheme)
    if prior not in ("nominal", "none"):
        raise UnknownNameError("prior", prior, ("nominal", "none"))
    check_use(
        estimator, physical=physical, controller=controller is not None, scheme=written.name,
        significant=significant, known_friction=known_friction is not None,
    )  # fmt: skip
    logs: list[Source] = [log] if isinstance(log, Log | LogFile) else list(log)
    if not logs:
        raise SteelyardError("There is no log to identify from.")
    beginnings = [first_piece(one) for one in logs]
    robot = as_logged(robot, beginnings)
    _check_torque(beginnings)
    loop = _loop(controller, robot)
    curves = known_curves(robot, known_friction)
    if curves and (tune or fit_shapes):
        raise SteelyardError("tune and fit_shapes look for friction themselves; leave them or the known friction out.")
    settings = Settings(
        scheme=scheme_text(written),
        estimator=estimator,
        physical=physical,
        prior=prior,
        preparation=preparation or Preparation(),
        score_cutoff=score_cutoff,
        significant=significant,
        fit_shapes=fit_shapes,
        known_friction=tuple(curves),
        controller="" if loop is None else loop.source or type(loop.controller).__name__,
    )
    wanted = remaining_terms(robot, curves) if curves and terms is None else terms
    task = replace(_task(robot, logs, beginnings, settings, written, curves, wanted, tune), loop=loop)
    found = _fit(task)
    at = score_cutoff or (task.tuning.score_cutoff if task.tuning is not None else task.cutoff)
    return _judged(task, found, at, validate, names, validate_names)


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be identified, once everything about it has been chosen."""

    robot: Robot
    logs: Sequence[Source]
    beginnings: Sequence[Log]
    settings: Settings
    scheme: Scheme
    curves: Mapping[str, Rounded]
    terms: Terms
    cutoff: float
    tuning: Tuning | None = None
    shapes: Shapes | None = None
    loop: ControlLoop | None = None

    @cached_property
    def base(self) -> BaseParameters:
        return base_parameters(self.robot, self.terms)

    @cached_property
    def dynamics(self) -> Dynamics:
        return Dynamics(self.robot, self.terms)

    @cached_property
    def prior(self) -> Prior | None:
        return nominal_prior(self.robot, self.terms) if self.settings.prior == "nominal" else None

    def motions(self, change: Change = lambda piece: piece) -> Iterator[Motion]:
        """A pass over the prepared motions of all logs; `change` acts on every piece before."""
        for one in self.logs:
            for piece in pieces_of(one):
                yield from prepare(change(piece), self.settings.preparation, self.cutoff)

    def rows(self, change: Change = lambda piece: piece) -> RegressionData:
        mask = self.settings.preparation.mask
        curves = self.curves or None
        return self.scheme.data(self.dynamics, self.base, lambda: self.motions(change), mask, curves)

    def experiment(self) -> Experiment:
        """The motions themselves and what controlled them, for estimators that take no rows."""
        from steelyard.estimation.simulated.control_loop import experiment_of

        for one in self.logs:
            if isinstance(one, LogFile):
                raise SteelyardError(f"{one.path}: too long for '{self.settings.estimator}'; cut it by a window.")
        logs = [piece for one in self.logs for piece in pieces_of(one)]
        return experiment_of(self.robot, self.terms, logs, self.settings.preparation, self.cutoff, self.loop)

    def model(self, estimate: Estimate) -> Model:
        """The model of an estimate, with the friction that was known before."""
        return with_known_friction(Model(self.robot, self.terms, estimate.theta), self.curves)


def _task(
    robot: Robot,
    logs: Sequence[Source],
    beginnings: Sequence[Log],
    settings: Settings,
    scheme: Scheme,
    curves: Mapping[str, Rounded],
    terms: Sequence[str | Term] | Terms | None,
    tune: bool,
) -> _Task:
    """Settle what the logs themselves decide: the tuned settings, the cut-off, the shapes of friction."""
    tuning = tuned(robot, beginnings, terms, settings.preparation, settings.score_cutoff, scheme) if tune else None
    if tuning is not None:
        best = tuning.chosen
        used = replace(settings.preparation, cutoff=best.cutoff_hz, velocity=best.velocity)
        settings = replace(settings, preparation=used)
    bound = identification_terms(robot, terms, tuning.chosen.smoothing if tuning is not None else 1.0)
    cutoff = chosen_cutoff(beginnings, settings.preparation)
    task = _Task(robot, logs, beginnings, settings, scheme, curves, bound, cutoff, tuning)
    if not settings.fit_shapes:
        return task
    shapes = fitted_shapes(bound, task.motions, settings.preparation.mask)
    return replace(task, terms=shapes.terms, shapes=shapes)


@dataclass(frozen=True, eq=False)
class _Found:
    """The free fit, the one that is delivered and, if asked for, the one without unsupported parameters."""

    free: Estimate
    chosen: Estimate
    reduced: Estimate | None
    singular_values: Array


def _fit(task: _Task) -> _Found:
    settings, data = task.settings, task.rows()
    if ESTIMATORS[settings.estimator].of.needs == "experiment":
        # They know of noise in the positions, or differentiate nothing: rounding does not make them lean.
        free, chosen = _estimates(task.experiment(), task.base, task.prior, settings)
        return _Found(free, chosen, None, _singular_values(data, task.base, free))
    free, chosen = _estimates(data, task.base, task.prior, settings)
    plain = make_estimator(settings.estimator)
    reduced = fit_significant(plain, data, task.base, task.prior) if settings.significant else None
    if reduced is not None and not settings.physical:
        chosen = reduced
    shift = rounding_shift(
        task.beginnings, task.cutoff, free.beta, lambda change: plain.fit(task.rows(change), task.base, task.prior).beta
    )
    if shift is not None:
        free, chosen = widened(free, shift), widened(chosen, shift)
    return _Found(free, chosen, reduced, _singular_values(data, task.base, free))


def _judged(
    task: _Task,
    found: _Found,
    score_cutoff: float,
    validate: Sequence[Source],
    names: Sequence[str],
    validate_names: Sequence[str],
) -> Identification:
    """Score the models on all logs, and put everything together."""
    model = task.model(found.chosen)
    nominal = Model.nominal(task.robot) if task.robot.has_inertia else None
    labels = _labels(names, task.logs, "log")
    seen = _scores(task, score_cutoff, task.logs, labels, model=model, nominal=None if validate else nominal)
    unseen = _scores(
        task,
        score_cutoff,
        validate,
        _labels(validate_names, validate, "validation"),
        model=model,
        free=task.model(found.free),
        nominal=nominal,
        reduced=None if found.reduced is None else task.model(found.reduced),
    )
    pieces = [m for one in task.beginnings for m in prepare(one, task.settings.preparation, task.cutoff)]
    return Identification(
        robot=task.robot,
        settings=task.settings,
        base=task.base,
        estimate=found.chosen,
        free=found.free,
        model=model,
        cutoff=task.cutoff,
        score_cutoff=score_cutoff,
        singular_values=found.singular_values,
        findings=_findings(labels, task.beginnings),
        velocity=_velocities(pieces),
        identification=seen["model"],
        validation=unseen["model"],
        free_validation=unseen["free"],
        nominal=(unseen if validate else seen)["nominal"],
        reduced=found.reduced,
        reduced_validation=unseen["reduced"],
        tuning=task.tuning,
        shapes=task.shapes,
        beginnings=tuple(zip(labels, task.beginnings, strict=True)),
    )


def _scores(
    task: _Task, score_cutoff: float, logs: Sequence[Source], labels: Sequence[str], **given: Model | None
) -> dict[str, tuple[Score, ...]]:
    """The scores of every model on every log; those of a model that is None are none."""
    models = {key: m for key, m in given.items() if m is not None}
    each = [
        score_models(tuple(models.values()), log, task.settings.preparation, task.cutoff, score_cutoff, name)
        for log, name in zip(logs, labels, strict=True)
    ]
    return dict.fromkeys(given, ()) | {key: tuple(s[k] for s in each) for k, key in enumerate(models)}


def _loop(controller: str | os.PathLike[str] | ControlLoop | None, robot: Robot) -> ControlLoop | None:
    if controller is None:
        return None
    from steelyard.estimation.simulated.control_loop import as_control_loop  # brings the simulation with it

    return as_control_loop(controller, robot)


def _check_torque(logs: Sequence[Log]) -> None:
    for one in logs:
        if one.tau is not None and not np.any(one.tau):
            name = one.meta.get("source", "The log")
            raise LogError(f"{name}: the torque is zero throughout; nothing can be weighed.")


def _estimates(
    data: RegressionData | Experiment, base: BaseParameters, prior: Prior | None, settings: Settings
) -> tuple[Estimate, Estimate]:
    """The free fit, and the one that is delivered."""
    if settings.physical:
        return fit_both(settings.estimator, data, base, prior, from_log=True)
    free = fit_by_name(settings.estimator, data, base, prior, from_log=True)
    return free, free


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
