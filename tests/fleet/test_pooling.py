"""Pooling of robots: the fit is exact, its error bars hold, and robots with poor logs gain."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from steelyard.errors import SteelyardError
from steelyard.fleet._arrowhead import Arrowhead, covariances
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.log_factors import LogFactors, log_factors, skipped_log
from steelyard.fleet.pooling import PooledFleet, pool
from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.study import Study
from tests.fleet.planar_fleet import made_log, planar, truth
from tests.fleet.population import Truth


def fleet(
    seed: int, robots: int, joints: int, logs: int, std: dict[str, float] | None = None, log_std: float = 0.0
) -> tuple[PooledFleet, dict[str, tuple[Array, Array]], list[LogFactors], Truth]:
    """Make a fleet; every fourth robot has only one short, slow log, and every eighth a joint that does not move."""
    made = Truth(joints, np.random.default_rng(seed), log_std=log_std)
    made.std |= std or {}
    drawn, every = {}, []
    for r in range(robots):
        name, poor = f"robot{r:03}", r % 4 == 0
        drawn[name] = made.robot()
        motion = {"count": 200, "speed": 0.2, "still": (0,) if r % 8 == 0 else ()} if poor else {}
        every += [made.log(name, *drawn[name], **motion) for _ in range(1 if poor else logs)]  # type: ignore[arg-type]
    return pool(made.design, every), drawn, every, made


@cache
def one_fleet() -> tuple[PooledFleet, dict[str, tuple[Array, Array]], list[LogFactors], Truth]:
    return fleet(3, 12, 2, 3)


def covered(seeds: range, robots: int, joints: int, logs: int, **kind: float) -> tuple[Array, Array]:
    """Return whether parameters are within 1.96 standard errors, and the errors of robots with a poor log."""
    inside, errors = [], []
    log_std = kind.pop("log_std", 0.0)
    for seed in seeds:
        found, drawn, _, _ = fleet(seed, robots, joints, logs, kind, log_std)
        for k, robot in enumerate(found.robots):
            beta, _ = drawn[robot.robot]
            inside.append(np.abs(robot.beta - beta) < 1.96 * robot.errors)
            if k % 8 == 4:
                errors.append([robot.beta - beta, robot.own_beta - beta])
    return np.array(inside), np.array(errors)


def test_error_bars_hold_and_pooling_helps_a_poor_log() -> None:
    """95 % intervals cover 92 to 98 % of the parameters, and pooling halves the errors of robots with a poor log."""
    inside, errors = covered(range(12), 10, 2, 3)
    assert 0.92 < inside.mean() < 0.98
    pooled, own = np.sqrt(np.mean(errors**2, axis=0)).mean(axis=1)
    assert pooled < 0.5 * own


@pytest.mark.proof
@pytest.mark.parametrize(
    ("fleets", "robots", "joints", "kind"),
    [
        (60, 10, 2, {}),
        (40, 20, 2, {"log_std": 0.1, "gain": 0.02, "links": 0.02}),
        (10, 60, 3, {"log_std": 0.05, "gain": 0.02}),
        (3, 200, 2, {"log_std": 0.05}),
        (6, 24, 6, {"log_std": 0.05, "gain": 0.02}),
    ],
)
def test_error_bars_hold_in_fleets_of_all_sizes(fleets: int, robots: int, joints: int, kind: dict[str, float]) -> None:
    inside, errors = covered(range(100, 100 + fleets), robots, joints, 4, **kind)
    assert 0.92 < inside.mean() < 0.98
    pooled, own = np.sqrt(np.mean(errors**2, axis=0)).mean(axis=1)
    assert pooled < 0.5 * own


def test_the_arrowhead_solution_equals_the_dense_fit() -> None:
    """Mean, robots and covariances equal those of one dense least-squares problem."""
    rng = np.random.default_rng(1)
    robots, d, p, q = 4, 5, 4, 6
    roots, B = rng.normal(size=(robots, 7, d)), rng.normal(size=(d, q))
    h, group_of = rng.normal(size=(robots, d)), np.array([0, 0, 1, 1, 2, 2])
    J, v = np.swapaxes(roots, 1, 2) @ roots, np.array([0.3, 1.0, 0.01])
    arrow = Arrowhead(J, h, B, group_of, p, np.ones(robots, dtype=bool))
    found = arrow.solve(v)
    effects = [np.hstack([np.eye(d)[:, :p], *(B if s == r else np.zeros((d, q)) for s in range(robots))])
            for r in range(robots)]  # fmt: skip
    prior = np.diag(np.concatenate([np.zeros(p), np.tile(1.0 / v[group_of], robots)]))
    whole = np.linalg.inv(sum(w.T @ j @ w for w, j in zip(effects, J, strict=True)) + prior)
    answer = whole @ sum(w.T @ x for w, x in zip(effects, h, strict=True))
    np.testing.assert_allclose(found.mu, answer[:p], rtol=1e-9)
    np.testing.assert_allclose(found.u.ravel(), answer[p:], rtol=1e-9)
    np.testing.assert_allclose(found.x, [w @ answer for w in effects], rtol=1e-9)
    np.testing.assert_allclose(found.variance_u.ravel(), np.diag(whole)[p:], rtol=1e-9)
    # If the scores vary as the information says, and the variances are known, nothing is added.
    known = np.full(3, 1e12)
    every, model = covariances(arrow, found, J, v, known)
    np.testing.assert_allclose(every, [w @ whole @ w.T for w in effects], rtol=1e-6)
    np.testing.assert_allclose(model, whole[:p, :p], rtol=1e-9)
    # With other scores it is the sandwich covariance.
    K = J + 0.5 * np.eye(d)
    meat = sum(w.T @ k @ w for w, k in zip(effects, K, strict=True)) + prior
    every, model = covariances(arrow, found, K, v, known)
    np.testing.assert_allclose(every, [w @ whole @ meat @ whole @ w.T for w in effects], rtol=1e-6)
    np.testing.assert_allclose(model, (whole @ meat @ whole)[:p, :p], rtol=1e-9)


def test_differences_between_robots_are_estimated() -> None:
    found, *_ = fleet(1, 40, 2, 3, {"viscous": 0.4, "coulomb": 0.02, "links": 0.0})
    std = {(k.kind, k.joint): k for k in found.kinds}
    for joint in ("joint1", "joint2"):
        assert std["viscous", joint].std == pytest.approx(0.4, rel=0.35)  # 40 robots determine it to a ninth
        assert std["viscous", joint].shown
        assert std["coulomb", joint].std < 0.06
        assert std["links", joint].std < 0.005
        assert not std["links", joint].shown
    assert not found.notes


def test_different_links_are_reported() -> None:
    found, *_ = fleet(2, 16, 2, 3, {"links": 0.3})
    assert all(k.shown for k in found.kinds if k.kind == "links")
    assert "The links of the robots differ: what 'joint1' moves" in found.notes[0]


def test_gains_are_separated_from_links() -> None:
    away, z = [], []
    for seed in range(4, 10):
        found, drawn, _, _ = fleet(seed, 16, 2, 3, {"gain": 0.05})
        rich = [r for k, r in enumerate(found.robots) if k % 4]
        away.append([r.gain - drawn[r.robot][1] for r in rich])
        z.append([(r.gain - drawn[r.robot][1]) / r.gain_errors for r in rich])
    assert np.std(away) < 0.02
    assert np.mean(np.abs(z) < 1.96) > 0.85
    # Errors of gains are correlated in a fleet. If they were equal, the sum of z² of six fleets with two joints would
    # be a χ² of 12: within these limits in all but two of a thousand cases. The value is 0.73.
    assert 0.43 < np.sqrt(np.mean(np.square(z))) < 1.66


def test_a_robot_without_a_log_equals_the_mean_robot() -> None:
    _, _, logs, made = one_fleet()
    found = pool(made.design, logs, ["stored"])
    stored = found.by_name["stored"]
    assert stored.logs == 0
    np.testing.assert_allclose(stored.beta, found.beta)
    assert np.all(np.isnan(stored.own_beta))
    own = made.design.own
    # The error bars include the difference between robots and the uncertainty of the mean.
    assert np.all(stored.errors >= found.errors)
    assert np.all(stored.errors[own] > 0.08)


def test_unidentifiable_parameters_are_nan() -> None:
    made = Truth(2, np.random.default_rng(5))
    logs = [made.log(name, *made.robot(), still=(1,)) for name in "abc"]
    found = pool(made.design, logs)
    hidden = [made.design.names.index(name) for name in ("viscous2", "coulomb2")]
    for robot in found.robots:
        assert np.all(np.isnan(robot.beta[hidden]))
        assert np.all(np.isinf(robot.errors[hidden]))
        assert np.isfinite(robot.beta[made.design.names.index("offset2")])


@pytest.mark.parametrize("count", [1, 3])
def test_a_single_robot_keeps_its_own_estimate(count: int) -> None:
    made = Truth(2, np.random.default_rng(6))
    drawn = made.robot()
    found = pool(made.design, [made.log("only", *drawn) for _ in range(count)])
    robot = found.robots[0]
    assert np.all(np.abs(robot.beta - robot.own_beta) < robot.own_errors)
    assert np.all(robot.errors > 0.7 * robot.own_errors)
    assert not any(k.shown for k in found.kinds)


def test_excluded_robots_do_not_influence_the_mean() -> None:
    _, drawn, logs, made = one_fleet()
    worn = made.log("worn", drawn["robot001"][0] * np.where(made.design.own, 4.0, 1.0), np.zeros(2))
    found, without = pool(made.design, [*logs, worn], excluded=["worn"]), pool(made.design, logs)
    np.testing.assert_allclose(found.beta, without.beta, rtol=1e-9)
    assert found.by_name["worn"].logs == 1
    away = found.by_name["worn"].beta - found.beta
    assert away[made.design.names.index("viscous1")] > 2.0


def test_logs_with_another_load_do_not_move_the_links() -> None:
    """A log with another stated load contributes to friction, but not to parameters that the load changes."""
    made = Truth(2, np.random.default_rng(8))
    load = np.zeros((made.design.rank, 2))
    load[[6, 7], [0, 1]] = 1.0
    made.design = type(made.design)(
        **{**vars_of(made.design), "load": load, "load_names": ("Ixx2", "mx2"), "load_link": "hand"}
    )
    beta, gain = made.robot()
    others = [made.log(name, *made.robot()) for name in "bcdef" for _ in range(2)]
    carries = beta + load @ np.array([3.0, 3.0])
    logs = [
        *(made.log("a", beta, gain) for _ in range(2)),
        made.log("a", carries, gain).with_table_values("a", load="box"),
    ]
    robot = pool(made.design, [*others, *logs]).by_name["a"]
    assert np.all(np.abs(robot.beta - beta)[[6, 7]] < 3.0 * robot.errors[[6, 7]])


def vars_of(made: object) -> dict[str, object]:
    return {
        name: getattr(made, name)
        for name in ("names", "units", "independent", "kinds", "joints", "equations", "friction")
    }


def test_a_fleet_without_usable_logs_is_refused() -> None:
    made = Truth(2, np.random.default_rng(7))
    with pytest.raises(SteelyardError, match="None of the logs of this robot type could be used"):
        pool(made.design, [skipped_log("It is empty.").with_table_values("a")])
    with pytest.raises(SteelyardError, match="is excluded"):
        pool(made.design, [made.log("a", *made.robot())], excluded=["a"])


def test_the_order_of_logs_and_robots_does_not_matter() -> None:
    found, _, logs, made = one_fleet()
    other = pool(made.design, logs[::-1])
    for one, two in zip(found.robots, other.robots, strict=True):
        assert one.robot == two.robot
        np.testing.assert_allclose(one.beta, two.beta, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(one.errors, two.errors, rtol=1e-6)


def test_every_robot_gets_a_physically_possible_model() -> None:
    """Planar arms with equal links and different friction, processed like real logs."""
    viscous = {"a": 0.6, "b": 0.8, "c": 1.1}
    logs = []
    for n, (name, value) in enumerate(viscous.items()):
        study = Study.of(planar(), [made_log(n, truth(value))], "viscous,coulomb,offset")
        model, left = study.quick_fit()
        logs.append(log_factors(study, study.base.values(model.theta), left, check=None).with_table_values(name))
    base = study.base
    design = FleetDesign.of(base, [e.name for e in logs[0].equations])
    assert set(design.kinds) == {"links", "viscous", "coulomb", "offset"}
    assert design.load_link == "fore"
    found = pool(design, logs)
    k = base.names.index("Fv1")
    for robot in found.robots:
        made = robot.estimate(base)
        assert made.physical
        assert made.beta[k] == pytest.approx(viscous[robot.robot], abs=4.0 * robot.errors[k])
        assert np.all(smallest_pseudo_eigenvalues(made.theta[:20]) > 0.0)
    assert found.estimate(base).physical


def test_uncertainty_of_the_terms_does_not_average_out() -> None:
    """A wrong friction law has the same effect on all robots."""
    plain, _, logs, made = one_fleet()
    doubted = pool(replace(made.design, structure_std=(0.5,) * made.design.rank), logs)
    for before, after in zip(plain.robots, doubted.robots, strict=True):
        assert np.allclose(after.errors**2 - before.errors**2, 0.25)
        seen = np.isfinite(before.own_errors)
        assert np.allclose((after.own_errors**2 - before.own_errors**2)[seen], 0.25)
    assert np.allclose(doubted.errors**2 - plain.errors**2, 0.25)


def test_the_evidence_is_the_ratio_of_restricted_likelihoods() -> None:
    """The reference is the Gaussian likelihood of the scores, with covariance J + J B v Bᵀ J."""
    rng, robots, base, size = np.random.default_rng(4), 7, 3, 5
    roots = rng.normal(size=(robots, size, 2 * size))
    J, B = roots @ np.swapaxes(roots, 1, 2), rng.normal(size=(size, 6))
    group_of, v, h = np.array([0, 0, 1, 2, 2, 1]), np.array([0.3, 0.05, 0.8]), 6.0 * rng.normal(size=(robots, size))
    counts = np.array([True] * 6 + [False])

    def restricted(variances: Array) -> float:
        X, whole, size_of, quadratic, right = np.eye(size)[:, :base], np.zeros((base, base)), 0.0, 0.0, np.zeros(base)
        for Jr, hr in zip(J[counts], h[counts], strict=True):
            S = Jr + Jr @ B @ np.diag(variances[group_of]) @ B.T @ Jr
            whole += X.T @ Jr @ np.linalg.solve(S, Jr @ X)
            right += X.T @ Jr @ np.linalg.solve(S, hr)
            size_of += np.linalg.slogdet(S)[1]
            quadratic += hr @ np.linalg.solve(S, hr)
        return float(-size_of - np.linalg.slogdet(whole)[1] - quadratic + right @ np.linalg.solve(whole, right))

    arrow = Arrowhead(J, h, B, group_of, base, counts)
    without = [restricted(np.where(np.arange(3) == g, 0.0, v)) for g in range(3)]
    np.testing.assert_allclose(arrow.evidence(v), restricted(v) - np.array(without), rtol=1e-9)
