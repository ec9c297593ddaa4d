"""`identify`: identifies a physically possible model with error bars and scores from logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.check.check import check_later_piece, check_study
from steelyard.check.error_hint import adds_error_hint
from steelyard.cutoff import choose_cutoff, judge_stated_cutoff
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.linear.rounding_bias import fit_beta, include_bias, rounding_shift
from steelyard.estimation.possible.physical import nearest_possible
from steelyard.estimation.possible.reference import described_prior, nominal_prior
from steelyard.estimation.registry import check_use, fit_both, fit_by_name, make_estimator, spelled_estimator
from steelyard.ground.arrays import Array
from steelyard.ground.progress import ProgressCallback, report_progress, reports_progress
from steelyard.ground.verb_options import with_changes, with_signature
from steelyard.identification._assumption_check import add_ledger
from steelyard.identification._extra_variance import (
    include_delay_error,
    jackknife_variance,
    shift_by_delay,
    widen_error_bars,
)
from steelyard.identification._friction_curves import error_with_fitted_friction, fit_rounding, friction_curves
from steelyard.identification._load_range import limit_loads, same_loads
from steelyard.identification._scoring import check_validation_logs, score_models_on_logs, with_fitted_friction
from steelyard.identification._verdict import grade_model
from steelyard.identification.agreement import agreement_of
from steelyard.identification.description_share import description_share
from steelyard.identification.identification import Identification, IdentificationSettings
from steelyard.identification.identify_options import OF_FILES, IdentifyOptions
from steelyard.parameters.terms import identification_terms
from steelyard.regression.band import NearestPossible
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Dynamic, make_scheme, scheme_text
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike, as_sources
from steelyard.signals.log import Log
from steelyard.signals.prepare import velocity_plan
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

if TYPE_CHECKING:
    from steelyard.estimation.simulation_error.control_loop import ControlLoop
    from steelyard.estimation.simulation_error.experiment import Experiment
    from steelyard.friction.compensation import SmoothedCurve


# Load-dependent terms are fitted again if the joint loads of the model differ from those assumed.
_MOST_REFITS = 3


@with_signature(IdentifyOptions)
@adds_error_hint
@reports_progress
def identify(
    robot: RobotLike,
    log: LogsLike | Study,
    validate: LogsLike = (),
    options: IdentifyOptions | None = None,
    *,
    names: Sequence[str] = (),
    validate_names: Sequence[str] = (),
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
    **changes: Any,
) -> Identification:
    """Identify the parameters of a robot from one or more logs and validate them on others.

    Args:
        robot: Robot, as `load_robot` takes it; its nominal inertias are the prior for what the data cannot identify.
        log: Identification logs: a path, a `Log`, a frame (pandas, polars, xarray), a dict of arrays, or several. A
            `Study` reuses its preparation and its filtered signals.
        validate: Validation logs; they take no part in any choice.
        options: Options of the identification; None: the defaults.
        names: Names of the identification logs, for tables and plots.
        validate_names: Names of the validation logs.
        mapping: Meaning of the columns of files and frames, as in `read_log`; None: automatic.
        progress: Callback for progress (`steelyard.ground.progress`).
        **changes: Fields of `IdentifyOptions` that replace those of `options`, such as `estimator="ols"`.
    """
    o = with_changes(options or IdentifyOptions(), changes, "identify")
    terms, known_friction, estimator = o.terms, o.known_friction, o.estimator
    if any(getattr(o, name) for name in OF_FILES):
        raise SteelyardError(f"{', '.join(OF_FILES)} need log files; split or average the logs, or use identify_files.")
    robot = as_robot(robot)
    written = make_scheme(o.scheme)
    if o.prior not in ("nominal", "none"):
        raise UnknownNameError("prior", o.prior, ("nominal", "none"))
    check_use(
        estimator, physical=o.physical, controller=o.controller is not None, scheme=written.name,
        significant=o.significant, known_friction=known_friction is not None,
    )  # fmt: skip
    if known_friction is not None and o.tune:
        raise SteelyardError("--tune (in Python: tune) searches for friction terms. Remove it or the known friction.")
    if o.plain and o.tune:
        raise SteelyardError("--plain fits without a search and --tune (in Python: tune) with one. Choose one.")
    logs = log if isinstance(log, Study) else as_sources(log, robot, mapping)
    validation_logs = as_sources(validate, robot, mapping)
    study = replace(logs if isinstance(logs, Study) else Study.of(robot, logs, (), o.prepared()), scheme=written)
    study = replace(study, look=check_later_piece if o.check else None)
    report_progress("Preparing the rows", 0.02)
    of = spelled_estimator(estimator).of
    # At standstill, nonlinear estimators need the rows of all joints.
    torques, one_by_one = of.needs == "rows" and isinstance(written, Dynamic), of.family == "linear"
    study = replace(study, preparation=study.preparation.for_rows(torques, one_by_one))
    loop = _loop(o.controller, study.robot)
    curves, fitted_terms = (
        ({}, terms) if known_friction is None else friction_curves(study.robot, known_friction, terms)
    )
    settings = IdentificationSettings(
        scheme=scheme_text(written),
        estimator=estimator,
        physical=o.physical,
        prior=o.prior,
        preparation=study.preparation,
        score_cutoff_hz=o.score_cutoff_hz,
        significant=o.significant,
        plain=o.plain,
        known_friction=tuple(curves),
        controller="" if loop is None else loop.source or type(loop.controller).__name__,
    )
    study = replace(study, terms=identification_terms(study.robot, fitted_terms), known_friction=curves)
    if torques and study.sources is None:
        study = replace(study, sources=velocity_plan(study.beginnings, study.preparation))
    # Before the cut-off is lowered, since a higher cut-off gives a more accurate delay.
    study = study.with_torque_between()
    settings = replace(settings, preparation=study.preparation)
    if torques and study.band is None:
        bounds = _nearest_possible(_Task(study, settings, {}, None, rotors_stated=terms is not None))
        study = choose_cutoff(study, bounds if o.physical else None)
        settings = replace(settings, preparation=study.preparation)
        if o.check and study.band is None:
            study = judge_stated_cutoff(study)
    if curves:
        curves = fit_rounding(study, curves)
        study = replace(study, known_friction=curves)
    # The search supports torque rows only.
    searches = o.tune or (terms is None and not o.plain and known_friction is None)
    task = usual = _Task(study, settings, curves, loop, rotors_stated=terms is not None)
    structure = None
    if searches and torques:
        from steelyard.identification._balance import add_counterbalance
        from steelyard.identification._search import search

        def fits(one: Study) -> tuple[Estimate, Estimate]:
            pair = _estimates(one.opening.rows, one.base, replace(task, study=one).prior, settings, shares=False)
            usual.fitted[one.opening.rows] = pair
            return pair

        study, pair = add_counterbalance(study, fits, fits(study))
        reference = replace(task, study=study).model(pair[1])
        structure = search(study, reference)
        task = replace(task, study=study.with_terms(structure.terms, reference))
    fit = _fit(task)
    if task.study.terms.needs_rigid:
        task, fit = _fit_loads(task, fit)
    residuals = [float(f"{x:.5g}") for x in fit.chosen.residual_std]
    report_progress("Fitting", 0.74, estimator, {"of": "fit", "estimator": estimator, "residual_std": residuals})
    if structure is not None or (of.needs == "rows" and one_by_one):
        variance = jackknife_variance(task.study.opening.rows, fit.free) if structure is None else structure.variance
        chosen = widen_error_bars(fit.chosen, variance)
        reduced = chosen if fit.reduced is fit.chosen else fit.reduced
        fit = _Fit(widen_error_bars(fit.free, variance), chosen, reduced)
    if torques and one_by_one:
        shift = shift_by_delay(task.study, make_estimator(o.estimator), task.prior)
        fit = replace(fit, free=include_delay_error(fit.free, shift), chosen=include_delay_error(fit.chosen, shift))
    study = task.study
    model = task.model(fit.chosen)
    models = {
        "model": model,
        "free": task.model(fit.free),
        "reduced": None if fit.reduced is None else task.model(fit.reduced),
    }
    scoring = score_models_on_logs(
        study, models, o.score_cutoff_hz, validation_logs, names, validate_names, find_copies=o.check
    )
    result = Identification(
        robot=study.robot,
        settings=settings,
        base=study.base,
        estimate=fit.chosen,
        free=fit.free,
        model=model,
        cutoff_hz=study.cutoff_hz,
        score_cutoff_hz=scoring.cutoff_hz,
        singular_values=_singular_values(study, fit.free),
        possible=model.possible,
        findings=tuple((n, f) for n, one in zip(scoring.names, study.beginnings, strict=True) for f in one.findings),
        velocity=study.velocity,
        band=study.band,
        between=study.between,
        delay=study.delay,
        late_velocities=study.late_velocities,
        identification=scoring.identification["model"],
        validation=scoring.validation["model"],
        free_validation=scoring.validation["free"],
        nominal=(scoring.validation if validation_logs else scoring.identification)["nominal"],
        reduced=fit.reduced,
        reduced_validation=scoring.validation["reduced"],
        structure=structure,
        agreement=agreement_of(study, scoring.names, fit.free),
        checks=tuple(zip(scoring.names, check_study(with_fitted_friction(study)), strict=True)) if o.check else (),
        **(check_validation_logs(scoring) if o.check and validation_logs else {}),
    )
    if not curves:
        result = replace(result, description=description_share(result))
    if o.check and torques and one_by_one and not curves:
        result = add_ledger(result, study, scoring.independent)
    if o.files:
        from steelyard.identification.file_scores import with_files

        result = with_files(result, usual.study, scoring, _format_fit(usual))
    if curves and o.check and terms is None:
        result = replace(result, without_known_friction=error_with_fitted_friction(robot, logs, result))
    return replace(result, verdict=grade_model(result))


def fit_study(study: Study) -> tuple[Estimate, Model]:
    """Return the free fit and the model of a `study` with its given terms, as `identify` would by default."""
    study = replace(study, scheme=Dynamic(), preparation=study.preparation.for_rows(torques=True, one_by_one=True))
    task = _Task(study, IdentificationSettings(preparation=study.preparation), {}, None, shares=False)
    fit = _fit(task)
    if study.terms.needs_rigid:
        task, fit = _fit_loads(task, fit)
    return fit.free, task.model(fit.chosen)


def fit_rows(study: Study, data: RegressionData) -> tuple[Estimate, Model]:
    """Return the free fit and the model for given rows, without the correction for rounded positions.

    Args:
        study: Study with terms and preparation.
        data: Its rows.
    """
    task = _Task(study, IdentificationSettings(preparation=study.preparation), {}, None)
    free, chosen = _estimates(data, study.base, task.prior, task.settings, shares=False)
    return free, task.model(chosen)


@dataclass(frozen=True, eq=False)
class _Task:
    """A study with all settings of its identification.

    `shares`: also compute the cost of the bounds; `rotors_stated`: the terms, and thus the rotors, were given;
    `fitted`: free and delivered fits by their rows, without the cost of the bounds.
    """

    study: Study
    settings: IdentificationSettings
    curves: Mapping[str, SmoothedCurve]
    loop: ControlLoop | None
    shares: bool = True
    rotors_stated: bool = False
    fitted: dict[RegressionData, tuple[Estimate, Estimate]] = field(default_factory=dict, repr=False)

    @cached_property
    def prior(self) -> Prior | None:
        if self.settings.prior != "nominal":
            return None
        robot, terms = self.study.robot, self.study.terms
        if spelled_estimator(self.settings.estimator).of.family == "filter":
            return described_prior(robot, terms)
        return nominal_prior(robot, terms, self.rotors_stated)

    def experiment(self) -> Experiment:
        """Return the motions and the controller, for estimators that do not use rows."""
        from steelyard.estimation.simulation_error.control_loop import experiment_of

        study = self.study
        for one in study.logs:
            if not isinstance(one, Log):
                raise SteelyardError(f"{one.path}: too long for '{self.settings.estimator}'. Cut it by a window.")
        return experiment_of(study, self.loop)

    def model(self, estimate: Estimate) -> Model:
        """Return the model of an estimate, with the known friction."""
        model = Model(self.study.robot, self.study.terms, estimate.theta)
        vars(model)["dynamics"] = self.study.dynamics  # Same robot and terms: avoids a second trace and compilation.
        if not self.curves:
            return model
        from steelyard.friction.compensation import add_friction

        return add_friction(model, self.curves)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Free fit, delivered fit and, if requested, the fit without insignificant parameters."""

    free: Estimate
    chosen: Estimate
    reduced: Estimate | None = None


def _fit(task: _Task) -> _Fit:
    study, settings = task.study, task.settings
    base = study.base
    event = {"of": "fit", "estimator": settings.estimator, "scheme": settings.scheme, "parameters": base.rank}
    report_progress("Fitting", 0.6, settings.estimator, event)
    if spelled_estimator(settings.estimator).of.needs == "experiment":
        # These estimators model position noise or do not differentiate, so rounding causes no bias.
        return _Fit(*_estimates(task.experiment(), base, task.prior, settings))
    options = {} if task.shares else {"shares": False}
    free, chosen = _estimates(study.rows, base, task.prior, settings, **options)
    plain = make_estimator(settings.estimator)
    reduced = None
    if settings.significant:
        from steelyard.estimation.linear.significance import fit_significant

        reduced = fit_significant(plain, study.rows, base, task.prior)
    if reduced is not None and not settings.physical:
        chosen = reduced
    shift = rounding_shift(
        study.beginnings,
        study.cutoff_hz,
        free.beta,
        lambda change: fit_beta(plain, study.changed_rows(change), base, task.prior),
    )
    if shift is not None:
        free, chosen = include_bias(free, shift), include_bias(chosen, shift)
    return _Fit(free, chosen, reduced)


def _fit_loads(task: _Task, fit: _Fit) -> tuple[_Task, _Fit]:
    """Repeat the fit with its own joint loads until they agree with the assumed ones."""
    for _ in range(_MOST_REFITS):
        model, study = task.model(fit.chosen), task.study
        if study.carrier is None or same_loads(study, model, study.carrier):
            break
        task = replace(task, study=study.with_terms(limit_loads(study, model), model))
        fit = _fit(task)
    return task, fit


def _nearest_possible(task: _Task) -> NearestPossible:
    """Return a function that gives the nearest physically possible base parameters."""
    base = task.study.base

    def nearest(beta: Array, covariance: Array) -> Array:
        full, std = np.zeros(len(base.parameters)), np.ones(len(base.robot.joint_names))
        estimate = Estimate(base=base, beta=beta, covariance=covariance, theta=full, residual_std=std, cost=0.0)
        return nearest_possible(estimate, task.prior, shares=False).beta

    return nearest


def _format_fit(task: _Task) -> Callable[[Study], tuple[Estimate, Model]]:
    """Return the fit function for robot files: physically possible, by `wls` if the estimator is not linear."""
    of = spelled_estimator(task.settings.estimator).of
    name = task.settings.estimator if of.family == "linear" and of.physical_form == "constrained" else "wls"
    settings = replace(task.settings, physical=True, estimator=name)

    def fit(study: Study) -> tuple[Estimate, Model]:
        own = _Task(study, settings, {}, None, rotors_stated=task.rotors_stated)
        done = task.fitted.get(study.rows) if settings == task.settings else None
        chosen = (done or _estimates(study.rows, study.base, own.prior, settings, shares=False))[1]
        return chosen, own.model(chosen)

    return fit


def _loop(controller: str | os.PathLike[str] | ControlLoop | None, robot: Robot) -> ControlLoop | None:
    if controller is None:
        return None
    from steelyard.estimation.simulation_error.control_loop import as_control_loop  # Imports the simulation.

    return as_control_loop(controller, robot)


def _estimates(
    data: RegressionData | Experiment, base: BaseParameters, prior: Prior | None,
    settings: IdentificationSettings, **options: Any,
) -> tuple[Estimate, Estimate]:  # fmt: skip
    """Return the free fit and the delivered one."""
    if settings.physical:
        return fit_both(settings.estimator, data, base, prior, from_log=True, **options)
    free = fit_by_name(settings.estimator, data, base, prior, from_log=True)
    return free, free


def _singular_values(study: Study, free: Estimate) -> Array:
    """Compute singular values of the base columns, rows weighted by 1/σ of their joint, columns of unit norm."""
    weights = 1.0 / np.maximum(free.residual_std, 1e-300)
    r = study.rows.reduction().factor.combined_triangle(weights, study.base.independent)[:-1, :-1]
    lengths = np.linalg.norm(r, axis=0)
    return np.asarray(np.linalg.svd(r / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False), dtype=np.float64)
