"""Wrong mappings, exchanged arms and failing gears are found in a fleet, and nothing in one without faults."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from steelyard.fleet.log_factors import LogFactors
from steelyard.fleet.odd_logs import odd_logs
from steelyard.fleet.outliers import JudgedFleet, _p_values, judge_fleet
from steelyard.ground.arrays import Array
from steelyard.trends import false_discovery
from tests.fleet.population import QuickLogs, Truth, from_rows

START, WEEK = 1.7e9, 7 * 86400.0
JOINTS, ROBOTS, WEEKS = 4, 12, 14
# Friction grows in joint 2 of r1; r2 and r3 exchange their arms; joint 3 of r4 has always had four times the friction.
GROWS, ARMS, WORN, SINCE = "r01", ("r02", "r03"), "r04", 7


@cache
def population() -> tuple[Truth, QuickLogs, dict[str, tuple[Array, Array]]]:
    made = Truth(JOINTS, np.random.default_rng(11), log_std=0.02, noise=0.1)
    made.std |= {"gain": 0.02}
    return made, QuickLogs(made, count=400), {f"r{n:02}": made.robot() for n in range(ROBOTS)}


def logs_of(faulty: bool) -> list[LogFactors]:
    made, quick, robots = population()
    out = []
    for name, (beta, gain) in robots.items():
        for week in range(WEEKS):
            now, g = beta.copy(), gain
            if faulty and name == GROWS:
                now[[9, 10]] *= 1.0 + 0.4 * max(week - SINCE + 1, 0) / (WEEKS - SINCE)
            if faulty and name == WORN:
                now[[15, 16]] *= 4.0
            if faulty and name in ARMS and week >= SINCE:
                now, g = robots[ARMS[1 - ARMS.index(name)]]
            date = START + week * WEEK + made.rng.uniform(0.0, 3600.0)
            out.append(quick.log(name, now, g, date, url=f"{name}/{week:02}"))
    return out


def wrong_mapping(kind: str, robot: str = "r05", weeks: int = 1) -> list[LogFactors]:
    """Make logs whose torques have the wrong sign, factor or order."""
    made, _, robots = population()
    beta, gain = robots[robot]
    out = []
    for week in range(weeks):
        A = made.rows(600)
        y = [(1.0 + g) * (a @ beta) + made.noise * made.rng.normal(size=600) for a, g in zip(A, gain, strict=True)]
        if kind == "sign":
            y[1] = -y[1]
        elif kind == "factor":
            y[2] = 1000.0 * y[2]
        else:
            y[0], y[3] = y[3], y[0]
        date = START + (week + 0.3) * WEEK
        out.append(from_rows(made.design, A, y).with_table_values(robot, f"{robot}/{kind}{week}", date))
    return out


@cache
def faulty() -> JudgedFleet:
    made, *_ = population()
    return judge_fleet(made.design, [*logs_of(True), *wrong_mapping("exchange", "r06", 2)], ["stored"])


def test_exchanged_arms_are_found_with_date_and_origin() -> None:
    told = {o.robot: o for o in faulty().outliers if o.kind == "exchange"}
    assert set(told) == set(ARMS)
    for one, other in (ARMS, ARMS[::-1]):
        assert told[one].since == pytest.approx(START + SINCE * WEEK, abs=0.5 * WEEK)
        assert told[one].like == other
        assert f"It matches robot '{other}' before its own exchange." in told[one].sentence


def test_a_gear_that_wears_and_one_that_is_worn_are_found() -> None:
    told = {(o.robot, o.joints): o for o in faulty().outliers if o.kind == "gear"}
    assert set(told) == {(GROWS, ("joint2",)), (WORN, ("joint3",))}
    grown, worn = told[GROWS, ("joint2",)], told[WORN, ("joint3",)]
    assert grown.since == pytest.approx(START + SINCE * WEEK, abs=3.0 * WEEK)
    assert worn.since is None
    assert "above that of the other 11 robots" in worn.sentence


def test_wrong_mappings_are_found_and_excluded() -> None:
    told = [o for o in faulty().outliers if o.kind == "mapping"]
    assert [(o.robot, o.joints, o.logs) for o in told] == [
        ("r06", ("joint1", "joint4"), ("r06/exchange0", "r06/exchange1"))
    ]
    assert "as if 'joint1' and 'joint4' had been exchanged" in told[0].sentence
    assert faulty().fleet.by_name["r06"].logs == WEEKS


def test_there_are_no_other_outliers_and_they_are_ranked() -> None:
    found = faulty().outliers
    assert {o.robot for o in found} == {GROWS, *ARMS, WORN, "r06"}
    assert [o.score for o in found] == sorted((o.score for o in found), reverse=True)
    assert faulty().fleet.by_name["stored"].logs == 0


def test_a_robot_with_another_arm_is_pooled_with_its_later_logs() -> None:
    _, _, robots = population()
    now = faulty().fleet.by_name[ARMS[0]]
    assert now.logs == WEEKS - SINCE
    away = np.abs(now.beta - robots[ARMS[1]][0])
    assert np.mean(away < 3.0 * now.errors) > 0.9


@pytest.mark.parametrize("kind", ["sign", "factor", "exchange"])
def test_the_fault_of_a_mapping_is_identified(kind: str) -> None:
    made, *_ = population()
    told = odd_logs(made.design, [*logs_of(False), *wrong_mapping(kind)])
    assert [(o.kind, o.url) for o in told] == [(kind, f"r05/{kind}0")]
    expected = {"sign": ("joint2",), "factor": ("joint3",), "exchange": ("joint1", "joint4")}
    assert told[0].joints == expected[kind]


def test_a_fleet_without_faults_has_no_outlier() -> None:
    made, *_ = population()
    found = judge_fleet(made.design, logs_of(False))
    assert not found.odd
    assert not found.outliers


@pytest.mark.parametrize("by_factors", [False, True])
def test_friction_may_differ_by_amounts_or_by_factors(by_factors: bool) -> None:
    """At most 5 % of 100 fleets with 200 joints have a false outlier for both kinds of differences."""
    rng, alarms = np.random.default_rng(12), 0
    for _ in range(100):
        value = np.exp(0.25 * rng.normal(size=200)) if by_factors else 1.0 + 0.2 * rng.normal(size=200)
        p = _p_values(np.maximum(value, 0.2) - 1.0, np.full(200, 1e-4), 1.0, True)
        alarms += bool(false_discovery(p, 0.05).any())
    assert alarms <= 5 + 2.6 * np.sqrt(5)
    assert _p_values(np.append(value - 1.0, 2.5), np.full(201, 1e-4), 1.0, True)[-1] < 1e-5


def test_few_robots_and_few_logs_have_no_outliers() -> None:
    made, _, robots = population()
    one = judge_fleet(made.design, [made.log("r00", *robots["r00"])])
    assert not one.outliers
    two = judge_fleet(made.design, [made.log(n, *robots[n], date=START) for n in ("r00", "r01")])
    assert not two.outliers


@pytest.mark.proof
def test_fleets_without_faults_have_few_false_alarms() -> None:
    """At most 5 % of fleets have a false outlier of each kind, so at most a fifth of one of the four kinds."""
    alarms = 0
    for seed in range(60):
        made = Truth(3, np.random.default_rng(200 + seed), log_std=0.03, noise=0.2)
        quick, logs = QuickLogs(made, count=400), []
        for n in range(15):
            own = made.robot()
            logs += [quick.log(f"r{n}", *own, START + k * WEEK, url=f"{n}/{k}") for k in range(12)]
        alarms += bool(judge_fleet(made.design, logs).outliers)
    assert alarms <= 60 * 0.2


def test_only_an_unstated_load_is_a_fault() -> None:
    made, _, robots = population()
    tip = [k for k, kind in enumerate(made.design.kinds) if kind == "links"][-3:]
    carries = replace(made.design, load=np.eye(made.design.rank)[:, tip], load_names=("m4", "mx4", "my4"))
    beta, gain = robots["r05"]
    heavy = beta.copy()
    heavy[tip] += 6.0
    A = made.rows(600)
    y = [(1.0 + g) * (a @ heavy) + made.noise * made.rng.normal(size=600) for a, g in zip(A, gain, strict=True)]
    logs, lifted = logs_of(False), from_rows(made.design, A, y)
    assert odd_logs(carries, [*logs, lifted.with_table_values("r05", "heavy", START, load="5 kg")]) == ()
    assert [o.url for o in odd_logs(carries, [*logs, lifted.with_table_values("r05", "heavy", START)])] == ["heavy"]
