"""The search for the structure finds the friction that was planted, and nothing where nothing was."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.identification.identify import identify
from steelyard.parameters import (
    Coulomb,
    Lag,
    LoadedCoulomb,
    LoadedTerm,
    RigidLoad,
    Ripple,
    Spring,
    StopElement,
    Stribeck,
    Viscous,
    terms,
)
from steelyard.parameters.term import TERMS, JointExcitation, Term
from steelyard.regression.block_grams import BlockGrams, Weighted
from steelyard.regression.block_rows import ENOUGH_ROWS, align_rows, stretches, tables
from steelyard.regression.rows import Equation, Rows
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

ROBOT = builtin("szabo3r")
RATE = 200.0


def motion(seed: int, seconds: float) -> tuple[np.ndarray, ...]:
    """Sines of a few tenths of a hertz: reversals, and all speeds between."""
    rng = np.random.default_rng(seed)
    rates = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.53])
    size, phase = rng.uniform(0.1, 0.5, (4, ROBOT.dof)), rng.uniform(0.0, 6.0, (4, ROBOT.dof))
    t = np.arange(int(seconds * RATE)) / RATE
    angle = t[:, None, None] * rates[:, None] + phase
    q, dq = (size * np.sin(angle)).sum(1), (size * rates[:, None] * np.cos(angle)).sum(1)
    return t, q, dq, -(size * rates[:, None] ** 2 * np.sin(angle)).sum(1)


PLANTS: dict[str, list[tuple[Term, float]]] = {
    "coulomb": [(Coulomb(), 1.0)],
    "stop": [(StopElement(width=0.01), 1.0)],
    "stribeck": [(Coulomb(smooth=0.001), 0.6), (Stribeck(speed=0.2, smooth=0.001), 0.8)],
    "spring": [(Coulomb(), 0.5), (Spring(), 4.0)],
    "ripple": [(Coulomb(), 0.5), (Ripple(order=5.0), 1.0)],
    "coulomb-loaded": [(Coulomb(smooth=0.001), 0.5), (LoadedCoulomb(smooth=0.001), 0.15)],
}


@cache
def plant(kind: str) -> Model:
    """Friction of about a fifth of the torque, of the planted kind."""
    parts = [*PLANTS[kind], (Viscous(), 0.5)]
    bound = terms(ROBOT, *(term for term, _ in parts))
    return Model(
        ROBOT,
        bound,
        np.concatenate([ROBOT.inertial_parameters, *(np.full(ROBOT.dof * len(t.columns), v) for t, v in parts)]),
    )


@cache
def log(kind: str, seed: int = 0) -> Log:
    t, q, dq, ddq = motion(seed, 40.0)
    tau = plant(kind).torque(q, dq, ddq, 1.0 / RATE)
    noise = np.random.default_rng(seed + 100).normal(size=tau.shape)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau + 0.02 * np.std(tau, axis=0) * noise)


def error_percent(model: Model, truth: Model) -> float:
    """Of the torques on another motion, without noise, in per cent of their standard deviations."""
    _, q, dq, ddq = motion(7, 15.0)
    true = truth.torque(q, dq, ddq, 1.0 / RATE)
    away = model.torque(q, dq, ddq, 1.0 / RATE) - true
    return float(100.0 * np.mean(np.sqrt(np.mean(away**2, axis=0)) / np.std(true, axis=0)))


@pytest.mark.parametrize("kind", PLANTS)
def test_the_planted_friction_is_found(kind: str) -> None:
    """Another motion's torque is predicted several times better than with the fixed terms, which lack or blur it."""
    found, fixed = (identify(ROBOT, log(kind), check=False, plain=plain) for plain in (False, True))
    assert found.structure is not None
    assert fixed.structure is None
    kinds = {term.kind for term in found.model.terms.terms}
    assert kind in kinds or (kind == "stribeck" and "viscous-saturating" in kinds)
    assert error_percent(found.model, plant(kind)) < 0.5 * error_percent(fixed.model, plant(kind))
    assert found.possible


def test_friction_under_load_ends_where_the_log_ends() -> None:
    """The limit is the largest load of the log, and a motion of three times the speed gets no more friction."""
    found = identify(ROBOT, log("coulomb-loaded"), check=False)
    limits = {c.index: t.load_limit for t, c in found.model.terms.with_coordinates if isinstance(t, LoadedTerm)}
    assert limits
    _, q, dq, ddq = motion(0, 40.0)
    shown = np.max(np.abs(plant("coulomb-loaded").rigid_torque(q, dq, ddq)), axis=0)
    # Noise and the low-pass move the peak of a load by some per cent.
    np.testing.assert_allclose(list(limits.values()), shown[list(limits)], rtol=0.05)
    fast = found.model.terms.along(q, 3.0 * dq, None, found.model.rigid_torque(q, 3.0 * dq, 9.0 * ddq))
    for k, (along, c) in enumerate(found.model.terms.history):
        if isinstance(along, RigidLoad):
            assert np.max(fast[:, k]) == limits[c.index]


def test_a_jump_is_found_as_a_jump_and_nothing_is_added() -> None:
    """Dry friction without any rounding: the term that was planted and no other, its level within its error bars."""
    found = identify(ROBOT, log("coulomb"), check=False)
    dry = [t for t in found.model.terms.terms if t.kind not in ("rotor", "viscous", "offset")]
    assert [t.kind for t in dry] == ["coulomb"]
    for k, name in enumerate(found.base.names):
        if name.startswith("Fc"):
            # Three joints: a level beyond four standard errors would come once in five thousand searches.
            assert abs(found.estimate.beta[k] - 1.0) < 4.0 * found.estimate.standard_errors[k]


def test_terms_that_are_given_stand() -> None:
    given = identify(ROBOT, log("stop"), terms=("rotor", "viscous", "coulomb"), check=False)
    assert given.structure is None
    assert [t.kind for t in given.model.terms.terms] == ["rotor", "viscous", "coulomb"]
    searched = identify(ROBOT, log("stop"), terms=("rotor", "viscous", "coulomb"), tune=True, check=False)
    assert "stop" in {t.kind for t in searched.model.terms.terms}


def test_logs_to_judge_by_decide_nothing() -> None:
    alone = identify(ROBOT, log("stop"), check=False)
    judged = identify(ROBOT, log("stop"), [log("coulomb", 3)], check=False)
    assert alone.structure is not None
    assert judged.structure is not None
    assert alone.structure.steps == judged.structure.steps


def test_shapes_over_the_position_need_a_motion_that_comes_back() -> None:
    """Once from end to end, drift looks like a spring, and a ripple needs its own period."""
    once, often = (JointExcitation("revolute", 1.0, 1.0, 10.0, sweeps) for sweeps in (1.5, 4.0))
    assert not Spring.candidates(once)
    assert not Ripple.candidates(once)
    assert Spring.candidates(often)
    assert [term.order for term in Ripple.candidates(often) if isinstance(term, Ripple)] == [7, 8, 9, 10, 11, 12]
    assert not Ripple.candidates(JointExcitation("prismatic", 1.0, 9.0, 10.0, 9.0))


def test_a_lag_holds_where_it_is_a_shift() -> None:
    """Td·dτ/dt of a sine against the sine Td later: within a twentieth, and never more than 0.3 of it."""
    lag = Lag(band_hz=5.0).widened_to_shift(1e-3)
    assert lag.band_hz == pytest.approx(0.3 / (2.0 * np.pi * 1e-3))
    assert Lag(band_hz=5.0).widened_to_shift(1.0).band_hz == 5.0
    # Within the band, sin(ωt − ωT) − sin(ωt) has the amplitude 2 sin(ωT/2), and ωT says that.
    phase = 2.0 * np.pi * lag.band_hz * 1e-3
    assert abs(phase / (2.0 * np.sin(0.5 * phase)) - 1.0) < 0.05


def test_what_is_offered_takes_energy_and_saturates() -> None:
    """At ten times the speed a candidate asks for no more than 1.1 of what it asked for at the top speed."""
    excited = JointExcitation("revolute", top_speed=1.0, travel=2.0, cutoff_hz=10.0)
    for _, cls in TERMS.items():
        for term in cls.candidates(excited):
            if not term.dissipative:
                continue
            slow, fast = (np.asarray(term.force(0.3, v), dtype=float) for v in (1.0, 10.0))
            # tanh and 1 − exp reach 63 % at the speed of their bend, which is the top speed at most.
            assert np.all(np.abs(fast) <= np.maximum(1.6 * np.abs(slow), 1e-12)), term
            assert np.all(slow * 1.0 >= 0.0), term


def test_small_steps_equal_the_whole_solution() -> None:
    """Schur complements of added columns against the fit with all of them, bounds included (NumPy and SciPy)."""
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(0)
    rows, shared, own = 400, 6, 4
    A, C = rng.normal(size=(rows, shared)), rng.normal(size=(rows, own))
    y = A @ rng.normal(size=shared) + C @ np.array([0.5, 0.0, 0.0, -0.7]) + rng.normal(size=rows)
    equation = Equation("q1", np.arange(shared))
    bounded = np.arange(shared + own) >= shared
    grams = BlockGrams([equation], range(shared), [own], 4, bounded)
    grams.add(0, np.column_stack([A, y]), C, np.arange(rows) * 4 // rows)
    start = np.arange(shared + own) <= shared
    sums = Weighted(grams, np.ones(1))
    fits = sums.fit(start)
    for more in ((1,), (3,), (1, 2)):
        by_steps = sums.extended(fits, 0, [shared + np.array(more)])[1][0]
        for b in range(4):
            out = np.arange(rows) * 4 // rows == b
            whole = np.column_stack([A, C[:, [0, *more]]])
            lower = np.r_[np.full(shared, -np.inf), np.zeros(1 + len(more))]
            # The active set method: the interior one multiplies by the infinite bounds.
            bounds = (lower, np.full(len(lower), np.inf))
            x = lsq_linear(whole[~out], y[~out], bounds, method="bvls", tol=1e-14).x
            # A ridge of 1e-9 of each column's square, and SciPy's own tolerance on active bounds.
            assert by_steps[b] == pytest.approx(np.sum((y[out] - whole[out] @ x) ** 2), rel=1e-4)


def test_what_is_at_its_bound_stays_there() -> None:
    """Rounding must not restore a column that was removed at its bound: its pivot is then zero, or below."""
    rng = np.random.default_rng(23)  # one of many such seeds
    rows, shared, own = 300, 14, 12
    # All columns are alike, as stops of neighbouring widths are, so that one that goes takes others with it.
    table = rng.normal(size=(rows, 1)) + 0.2 * rng.normal(size=(rows, shared + own))
    y = table @ rng.normal(size=shared + own) + 0.1 * rng.normal(size=rows)
    grams = BlockGrams([Equation("q1", np.arange(shared))], range(shared), [own], 2, np.ones(shared + own, bool))
    grams.add(0, np.column_stack([table[:, :shared], y]), table[:, shared:], np.arange(rows) * 2 // rows)
    sums = Weighted(grams, np.ones(1))
    fit = sums.fit(np.arange(shared + own) < shared)
    with np.errstate(all="raise"):
        found, _ = sums.extended(fit, 0, [np.array([shared + k]) for k in range(own)])
    assert np.all(found >= 0.0)


def test_a_fit_without_columns_is_the_fit_that_never_had_them() -> None:
    """Out of the whole fit, against one of the smaller structure, where bounds act in both (columns are alike)."""
    rng = np.random.default_rng(3)
    rows, shared, own = 300, 8, 6
    table = rng.normal(size=(rows, 1)) + rng.normal(size=(rows, shared + own))
    y = table @ rng.normal(size=shared + own) + 0.1 * rng.normal(size=rows)
    bounded = np.arange(shared + own) % 2 == 0
    grams = BlockGrams([Equation("q1", np.arange(shared))], range(shared), [own], 3, bounded)
    grams.add(0, np.column_stack([table[:, :shared], y]), table[:, shared:], np.arange(rows) * 3 // rows)
    sums = Weighted(grams, np.ones(1))
    fits = sums.fit(np.ones(shared + own, bool))
    assert np.any(fits.free[:, bounded] < 0.0)  # or bounds would not act
    for gone in (np.array([2]), np.array([1, 9, 10])):
        smaller = sums.fit(~np.isin(np.arange(shared + own), gone))
        np.testing.assert_allclose(fits.less(gone, bounded).x, smaller.x, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(fits.less(gone, bounded).inverse, smaller.inverse, rtol=1e-6, atol=1e-10)


def test_stretches_of_a_long_log_have_the_rows_of_the_whole() -> None:
    """With their surroundings, the rows of stretches equal those of the whole motion, except for far ends."""
    bound = terms(ROBOT, "viscous", "coulomb")
    t, q, dq, ddq = motion(0, 600.0)
    truth = Model(ROBOT, bound, np.concatenate([ROBOT.inertial_parameters, np.ones(len(bound))]))
    log = Log(ROBOT.joint_names, t, q, dq=dq, tau=truth.torque(q, dq, ddq))
    study = Study.of(ROBOT, log, ("viscous", "coulomb"))
    whole = align_rows(next(iter(study.first_motions(0))))
    [some] = stretches([whole])
    asked, rows = min(ENOUGH_ROWS, whole.rows), sum(part.rows for _, part in some)
    assert whole.rows > ENOUGH_ROWS, "the log is too short for this test"
    assert 0.99 * asked <= rows <= asked
    written = Rows(study.dynamics, study.base.independent)
    everything = tables(study.dynamics, study.base, written, whole)
    first = whole.keep.start
    for inside, part in some[1:-1]:
        begin = (inside.start + part.keep.start - first) // whole.keep.step
        for mine, theirs in zip(tables(study.dynamics, study.base, written, part), everything, strict=True):
            expected = theirs[begin : begin + part.rows]
            # The filter has forgotten all but thousandths of what it did not see.
            assert np.max(np.abs(mine - expected)) < 5e-3 * np.max(np.abs(expected))


def test_bars_of_rotors_know_that_late_friction_looks_like_them() -> None:
    """A torque that is 3 ms late: the lag is that of the rigid torque, and −Td·Fv goes to the rotor, not to noise."""
    bound = terms(ROBOT, "rotor", "viscous", "coulomb")
    t, q, dq, ddq = motion(0, 40.0)
    size = np.std(Model.nominal(ROBOT).rigid_torque(q, dq, ddq), axis=0)
    truth = Model(ROBOT, bound, np.concatenate([ROBOT.inertial_parameters, 0.02 * size, 0.4 * size, 0.05 * size]))
    tau = truth.torque(q, dq, ddq)
    late = np.column_stack([np.interp(t - 0.003, t, column) for column in tau.T])
    noise = 0.01 * np.std(tau, axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    log = Log(ROBOT.joint_names, t, q, dq=dq, tau=late + noise)
    # As it is logged; by default the delay would be found and taken off.
    found = identify(ROBOT, log, preparation=Preparation(delay=0.0), check=False)
    values = {p.name: v for p, v in zip(truth.dynamics.parameters, truth.theta, strict=True)}
    away = found.estimate.beta - found.base.values(np.array([values.get(p.name, 0.0) for p in found.base.parameters]))
    names = [p.name for p in found.base.parameters]
    rotors = np.any(found.base.matrix[:, [names.index(f"Ia{k + 1}") for k in range(ROBOT.dof)]] != 0.0, axis=1)
    noise_error = np.hypot(found.estimate.details["noise_error"], found.estimate.details["motion_error"])
    assert np.max(np.abs(away / noise_error)[rotors]) > 4.0
    assert np.max(np.abs(away / found.estimate.standard_errors)[rotors]) < 2.0


def test_a_torque_that_never_changes_has_finite_weights() -> None:
    """Its standard deviation is zero, and the weights are the inverse of it; warnings of arithmetic are errors here."""

    class One:
        """An equation over the only column there is."""

        def among(self, shared: list[int]) -> tuple[None, np.ndarray]:
            return None, np.arange(len(shared))

    grams = BlockGrams([One()], [0], [0], 2, np.zeros(1, dtype=bool))  # type: ignore[list-item]
    rows = np.column_stack([np.linspace(-1.0, 1.0, 40), np.zeros(40)])
    grams.add(0, rows, np.zeros((40, 0)), np.arange(40) // 20)
    weighted = grams.weighted(np.ones(1, dtype=bool))
    assert np.isfinite(weighted.weights).all()
    assert np.isfinite(weighted.fit(np.ones(1, dtype=bool)).x).all()
