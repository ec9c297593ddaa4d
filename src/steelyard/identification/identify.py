"""`identify`: a robot and its logs in, a physically possible model with error bars and scores out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.check.check import check_study, found_later
from steelyard.check.error_hint import adds_error_hint
from steelyard.cutoff import choose_cutoff, judge_stated_cutoff
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.linear.rounding import fit_beta, include_bias, rounding_shift
from steelyard.estimation.possible.reference import described_prior, nominal_prior
from steelyard.estimation.registry import check_use, fit_both, fit_by_name, make_estimator, spelled_estimator
from steelyard.ground.arrays import Array
from steelyard.ground.progress import ProgressCallback, reports_progress, tell_progress
from steelyard.ground.renamed import renamed
from steelyard.identification._assumed import with_assumptions
from steelyard.identification._doubt import doubted, motion_doubt
from steelyard.identification._judged import as_checked, checked_judges, judge
from steelyard.identification._known_friction import error_without, known_terms, rounded_as_seen
from steelyard.identification._load_range import limited_loads, same_loads
from steelyard.identification._verdict import judge as verdict_of
from steelyard.identification.agreement import agreement_of
from steelyard.identification.identification import Identification, IdentificationSettings
from steelyard.parameters.terms import TermsLike, identification_terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Dynamic, Scheme, make_scheme, scheme_text
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogsLike, as_sources
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, velocity_plan
from steelyard.signals.read import AnyMapping
from steelyard.study import Study

if TYPE_CHECKING:
    from steelyard.estimation.simulated.control_loop import ControlLoop
    from steelyard.estimation.simulated.experiment import Experiment
    from steelyard.friction.compensation import CurvesLike, SmoothedCurve


# Terms that go by what a joint carries are fitted again where the model carries something else than it was told.
_MOST_REFITS = 3


@renamed(score_cutoff="score_cutoff_hz")
@adds_error_hint
@reports_progress
def identify(
    robot: RobotLike,
    log: LogsLike | Study,
    validate: LogsLike = (),
    *,
    terms: TermsLike | None = None,
    scheme: str | Scheme = "dynamic",
    estimator: str = "wls",
    physical: bool = True,
    prior: str = "nominal",
    preparation: Preparation | None = None,
    score_cutoff_hz: float | None = None,
    significant: bool = False,
    plain: bool = False,
    tune: bool = False,
    known_friction: CurvesLike | None = None,
    controller: str | os.PathLike[str] | ControlLoop | None = None,
    names: Sequence[str] = (),
    validate_names: Sequence[str] = (),
    check: bool = True,
    files: bool = True,
    mapping: AnyMapping = None,
    progress: ProgressCallback | None = None,
) -> Identification:
    """Find the parameters of a robot from one log or several, and judge them on others.

    Args:
        robot: the robot, as `load_robot` takes it; its nominal inertias serve as prior for what the motion cannot show.
        log: what to identify from: a path, a `Log`, a frame (pandas, polars, xarray), a dict of arrays, or several; a
            study of it, made before, brings its preparation and what it has filtered.
        validate: logs to judge by, one or several; they take no part in any choice.
        terms: joint terms, by name ("viscous,coulomb", or a list) or as objects, which then stand as they are. Default:
            rotor, viscous, Coulomb and offset, and what a search on the identification logs adds (`_search.py`).
        scheme: how the physics is written: "dynamic" (τ = Y θ), "filtered-dynamic", "momentum", "energy", "power" or
            "filtered-power", with options as in "filtered-dynamic:cutoff_hz=1.5,order=2", or as an object.
        estimator: any name of `steelyard.estimation.ESTIMATORS`, settings behind it if any ("ekf:start=prior");
            docs/how-to-choose.md says which is for what.
        physical: whether the result must be physically possible (the default); otherwise it is the free fit.
        prior: "nominal" (the description's inertias where they are given and possible) or "none".
        preparation: filter, derivatives, masks; the defaults choose from the identification logs alone.
        score_cutoff_hz: Hz of the scores' own filter; default: the fit's cut-off.
        significant: also take away, one by one, the base parameters that the data do not support. With
            `physical=False` the reduced fit is what is delivered; a physically possible model keeps all of them,
            since no body has combinations of exactly zero, and the reduced fit stands beside it as `reduced`.
        plain: take the default terms as they are, without a search.
        tune: search from `terms` on, too, where they are given.
        known_friction: curves measured before, by joint or motor (`measure_friction`, or functions of velocity). They
            are taken off the torque, and the model has them as tables in place of the default terms of friction.
        controller: what controlled the robot while it was logged: a file (`read_control_loop` says what stands in it)
            or a `ControlLoop`; for estimators that simulate the closed loop.
        names: of the logs to identify from, for tables and plots.
        validate_names: of the logs to judge by.
        check: also look at the logs as `check_log` does, and test what the fit assumes (`assumptions`).
        files: also fit the best model that each kind of robot file can hold, and score the files.
        mapping: what the columns of files and frames mean, as in `read_log`; None: they are recognised.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
    """
    robot = as_robot(robot)
    written = make_scheme(scheme)
    if prior not in ("nominal", "none"):
        raise UnknownNameError("prior", prior, ("nominal", "none"))
    check_use(
        estimator, physical=physical, controller=controller is not None, scheme=written.name,
        significant=significant, known_friction=known_friction is not None,
    )  # fmt: skip
    if known_friction is not None and tune:
        raise SteelyardError("--tune (in Python: tune) looks for friction itself; leave it or the known friction out.")
    if plain and tune:
        raise SteelyardError("--plain takes the terms as they are, --tune (in Python: tune) searches; choose one.")
    logs = log if isinstance(log, Study) else as_sources(log, robot, mapping)
    judges = as_sources(validate, robot, mapping)
    study = replace(logs if isinstance(logs, Study) else Study.of(robot, logs, (), preparation), scheme=written)
    study = replace(study, look=found_later if check else None)
    tell_progress("Preparing the rows", 0.02)
    of = spelled_estimator(estimator).of
    # Standstill: others than linear ones need the rows of all joints at every instant.
    torques, one_by_one = of.needs == "rows" and isinstance(written, Dynamic), of.family == "linear"
    study = replace(study, preparation=study.preparation.for_rows(torques, one_by_one))
    loop = _loop(controller, study.robot)
    curves, wanted = ({}, terms) if known_friction is None else known_terms(study.robot, known_friction, terms)
    settings = IdentificationSettings(
        scheme=scheme_text(written),
        estimator=estimator,
        physical=physical,
        prior=prior,
        preparation=study.preparation,
        score_cutoff_hz=score_cutoff_hz,
        significant=significant,
        plain=plain,
        known_friction=tuple(curves),
        controller="" if loop is None else loop.source or type(loop.controller).__name__,
    )
    study = replace(study, terms=identification_terms(study.robot, wanted), known_friction=curves)
    if torques and study.sources is None:
        study = replace(study, sources=velocity_plan(study.beginnings, study.preparation))
    # Before the cut-off is lowered: a delay shows the better the more of the torque is left.
    study = study.with_torque_between()
    settings = replace(settings, preparation=study.preparation)
    if torques and study.band is None:
        study = choose_cutoff(study)
        settings = replace(settings, preparation=study.preparation)
        if check and study.band is None:
            study = judge_stated_cutoff(study)
    if curves:
        curves = rounded_as_seen(study, curves)
        study = replace(study, known_friction=curves)
    # Estimators that simulate take the terms as they are, and other schemes write the physics otherwise.
    wants = tune or (terms is None and not plain and known_friction is None)
    task = usual = _Task(study, settings, curves, loop, rotors_stated=terms is not None)
    structure = None
    if wants and torques:
        from steelyard.identification._balance import balanced  # not needed by all
        from steelyard.identification._search import search

        def fits(one: Study) -> tuple[Estimate, Estimate]:
            pair = _estimates(one.opening.rows, one.base, replace(task, study=one).prior, settings, shares=False)
            usual.fitted[one.opening.rows] = pair
            return pair

        study, pair = balanced(study, fits, fits(study))
        reference = replace(task, study=study).model(pair[1])
        structure = search(study, reference)
        task = replace(task, study=study.with_terms(structure.terms, reference))
    fit = _fit(task)
    if task.study.terms.needs_rigid:
        task, fit = _settled(task, fit)
    left = [float(f"{x:.5g}") for x in fit.chosen.residual_std]
    tell_progress("Fitting", 0.74, estimator, {"of": "fit", "estimator": estimator, "residual_std": left})
    if structure is not None or (of.needs == "rows" and one_by_one):
        doubt = motion_doubt(task.study.opening.rows, fit.free) if structure is None else structure.doubt
        chosen = doubted(fit.chosen, doubt)
        reduced = chosen if fit.reduced is fit.chosen else fit.reduced
        fit = _Fit(doubted(fit.free, doubt), chosen, reduced)
    study = task.study
    model = task.model(fit.chosen)
    models = {
        "model": model,
        "free": task.model(fit.free),
        "reduced": None if fit.reduced is None else task.model(fit.reduced),
    }
    judged = judge(study, models, score_cutoff_hz, judges, names, validate_names, find_copies=check)
    found = Identification(
        robot=study.robot,
        settings=settings,
        base=study.base,
        estimate=fit.chosen,
        free=fit.free,
        model=model,
        cutoff_hz=study.cutoff_hz,
        score_cutoff_hz=judged.cutoff_hz,
        singular_values=_singular_values(study, fit.free),
        possible=model.possible,
        findings=tuple((n, f) for n, one in zip(judged.names, study.beginnings, strict=True) for f in one.findings),
        velocity=study.velocity,
        band=study.band,
        between=study.between,
        delay=study.delay,
        late_velocities=study.late_velocities,
        identification=judged.identification["model"],
        validation=judged.validation["model"],
        free_validation=judged.validation["free"],
        nominal=(judged.validation if judges else judged.identification)["nominal"],
        reduced=fit.reduced,
        reduced_validation=judged.validation["reduced"],
        structure=structure,
        agreement=agreement_of(study, judged.names, fit.free),
        checks=tuple(zip(judged.names, check_study(as_checked(study)), strict=True)) if check else (),
        **(checked_judges(judged) if check and judges else {}),
    )
    if check and torques and one_by_one and not curves:
        found = with_assumptions(found, study, judged.independent)
    if files:
        from steelyard.identification.file_scores import with_files

        found = with_files(found, usual.study, judged, _format_fit(usual))
    if curves and check and terms is None:
        found = replace(found, without_known_friction=error_without(robot, logs, found))
    return replace(found, verdict=verdict_of(found))


def fit_study(study: Study) -> tuple[Estimate, Model]:
    """The free fit to a `study` with its terms as they are, and the model: those of `identify` by default, without
    scores, checks and what bounds cost, for who identifies one robot after the other and asks for no more."""
    study = replace(study, scheme=Dynamic(), preparation=study.preparation.for_rows(torques=True, one_by_one=True))
    task = _Task(study, IdentificationSettings(preparation=study.preparation), {}, None, shares=False)
    fit = _fit(task)
    if study.terms.needs_rigid:
        task, fit = _settled(task, fit)
    return fit.free, task.model(fit.chosen)


def fit_rows(study: Study, data: RegressionData) -> tuple[Estimate, Model]:
    """What `fit_study` gives of a `study` whose rows are `data`, where rounding of positions has moved nothing."""
    task = _Task(study, IdentificationSettings(preparation=study.preparation), {}, None)
    free, chosen = _estimates(data, study.base, task.prior, task.settings, shares=False)
    return free, task.model(chosen)


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be identified, once everything about it has been chosen.

    `shares`: also what bounds cost; `rotors_stated`: the terms, rotors among them, were asked for by name.
    """

    study: Study
    settings: IdentificationSettings
    curves: Mapping[str, SmoothedCurve]
    loop: ControlLoop | None
    shares: bool = True
    rotors_stated: bool = False
    # The free fit and the delivered one to rows, as the settings say, without what bounds cost.
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
        """The motions themselves and what controlled them, for estimators that take no rows."""
        from steelyard.estimation.simulated.control_loop import experiment_of

        study = self.study
        for one in study.logs:
            if not isinstance(one, Log):
                raise SteelyardError(f"{one.path}: too long for '{self.settings.estimator}'; cut it by a window.")
        return experiment_of(study, self.loop)

    def model(self, estimate: Estimate) -> Model:
        """The model of an estimate, with the friction that was known before."""
        model = Model(self.study.robot, self.study.terms, estimate.theta)
        vars(model)["dynamics"] = self.study.dynamics  # of the same robot and terms: traced and compiled once
        if not self.curves:
            return model
        from steelyard.friction.compensation import add_friction

        return add_friction(model, self.curves)


@dataclass(frozen=True, eq=False)
class _Fit:
    """The free fit, the one that is delivered and, if asked for, the one without unsupported parameters."""

    free: Estimate
    chosen: Estimate
    reduced: Estimate | None = None


def _fit(task: _Task) -> _Fit:
    study, settings = task.study, task.settings
    base = study.base
    said = {"of": "fit", "estimator": settings.estimator, "scheme": settings.scheme, "parameters": base.rank}
    tell_progress("Fitting", 0.6, settings.estimator, said)
    if spelled_estimator(settings.estimator).of.needs == "experiment":
        # They know of noise in the positions, or differentiate nothing: rounding does not make them lean.
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


def _settled(task: _Task, fit: _Fit) -> tuple[_Task, _Fit]:
    """The fit by what the joints carry in the fit itself, where that is not what the reference said."""
    for _ in range(_MOST_REFITS):
        found, study = task.model(fit.chosen), task.study
        if study.carrier is None or same_loads(study, found, study.carrier):
            break
        task = replace(task, study=study.with_terms(limited_loads(study, found), found))
        fit = _fit(task)
    return task, fit


def _format_fit(task: _Task) -> Callable[[Study], tuple[Estimate, Model]]:
    """How a study is fitted for a robot file: among possible robots, by `wls` where the estimator is not linear."""
    of = spelled_estimator(task.settings.estimator).of
    name = task.settings.estimator if of.family == "linear" and of.physical_form == "constrained" else "wls"
    settings = replace(task.settings, physical=True, estimator=name)

    def fit(study: Study) -> tuple[Estimate, Model]:
        own = _Task(study, settings, {}, None, rotors_stated=task.rotors_stated)
        done = task.fitted.get(study.rows) if settings == task.settings else None
        chosen = (done or _estimates(study.rows, study.base, own.prior, settings, shares=False))[1]
        return chosen, own.model(chosen)

    return fit


# What few ask for is imported when it is asked for.


def _loop(controller: str | os.PathLike[str] | ControlLoop | None, robot: Robot) -> ControlLoop | None:
    if controller is None:
        return None
    from steelyard.estimation.simulated.control_loop import as_control_loop  # brings the simulation with it

    return as_control_loop(controller, robot)


def _estimates(
    data: RegressionData | Experiment, base: BaseParameters, prior: Prior | None,
    settings: IdentificationSettings, **options: Any,
) -> tuple[Estimate, Estimate]:  # fmt: skip
    """The free fit, and the one that is delivered."""
    if settings.physical:
        return fit_both(settings.estimator, data, base, prior, from_log=True, **options)
    free = fit_by_name(settings.estimator, data, base, prior, from_log=True)
    return free, free


def _singular_values(study: Study, free: Estimate) -> Array:
    """Of the base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm; the largest first."""
    weights = 1.0 / np.maximum(free.residual_std, 1e-300)
    r = study.rows.reduction().factor.joined(weights, study.base.independent)[:-1, :-1]
    lengths = np.linalg.norm(r, axis=0)
    return np.asarray(np.linalg.svd(r / np.where(lengths > 0.0, lengths, 1.0), compute_uv=False), dtype=np.float64)
