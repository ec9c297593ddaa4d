"""Changes of friction, offset and gain over months are found with their dates, with the stated rate of false alarms."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from log_files import real_logs

from steelyard.fleet._channels import Channel
from steelyard.fleet._daily_series import DailySeries
from steelyard.fleet.drift import FleetDrift, find_changes, fleet_drift
from steelyard.fleet.fleet import identify_fleet
from steelyard.fleet.log_factors import LogFactors, skipped_log
from steelyard.fleet.pooling import pool
from steelyard.trends import excess_variance, false_discovery, scan
from tests.fleet.population import QuickLogs, Truth

START, WEEK = 1.7e9, 7 * 86400.0


def test_p_values_hold_over_all_dates() -> None:
    """The p-values of series without a change are valid and not much too large."""
    rng = np.random.default_rng(0)
    n = 20
    same = np.broadcast_to(np.eye(n), (1500, n, n))
    found = scan(rng.normal(size=(1500, n)), same, np.arange(float(n)), np.full(1500, 1e6))
    p = np.array([one.p for one in found if one is not None])
    for level in (0.2, 0.05):
        assert 0.4 * level < np.mean(p < level) < level + 2.6 * np.sqrt(level / len(p))


def test_steps_and_ramps_are_distinguished_and_dated() -> None:
    rng, t = np.random.default_rng(1), np.arange(40.0)
    for ramp, course in ((False, np.where(t >= 17, 5.0, 0.0)), (True, np.maximum(t - 17, 0.0) * 0.5)):
        known = np.eye(40)[None], t, np.array([1e6])
        found = scan(rng.normal(size=(1, 40)) + course, *known)[0]
        assert found is not None
        assert found.ramp == ramp
        assert found.first <= 17 <= found.last
        assert found.size == pytest.approx(course[-1], abs=3.0 * found.error)
        after = scan(rng.normal(size=(1, 40)) + course, *known, [found.template])[0]
        assert after is not None
        assert after.p > 1e-3


def test_excess_variance_is_robust_to_a_minority() -> None:
    rng = np.random.default_rng(2)
    known = rng.uniform(0.5, 2.0, 4000)
    squares = rng.normal(size=4000) ** 2 * (known + 2.0 * 3.0)
    squares[:400] *= 100.0
    assert excess_variance(squares, known, np.full(4000, 2.0)) == pytest.approx(3.0, rel=0.25)
    assert excess_variance(0.5 * rng.normal(size=4000) ** 2 * known, known, np.full(4000, 2.0)) == 0.0


def test_the_false_discovery_rate_is_as_stated() -> None:
    rng = np.random.default_rng(3)
    false = []
    for _ in range(400):
        p = rng.uniform(size=200)
        p[:40] *= 1e-4
        told = false_discovery(p, 0.1)
        false.append(told[40:].sum() / max(told.sum(), 1))
    assert 0.06 < np.mean(false) < 0.1  # 0.1 times the part that is null


JOINTS = 2
CHANNELS = [
    Channel(f"joint{j}", what, "N m", np.zeros(0), np.ones(1), what == "friction")
    for j in range(JOINTS)
    for what in ("friction", "gain")
]


def still(rng: np.random.Generator, robots: int = 5, days: int = 12, scatter: float = 2.0) -> list[DailySeries]:
    """Make robots that do not change, whose days scatter more than their error bars, each by its own amount."""
    out = []
    for r in range(robots):
        t = START + np.sort(rng.choice(100, days, replace=False)) * 86400.0
        shape = days, len(CHANNELS)
        v = rng.uniform(0.5, 2.0, shape)
        z = np.sqrt(v + scatter * np.exp(0.3 * rng.normal())) * rng.normal(size=shape)
        ones = np.ones(len(CHANNELS))
        out.append(DailySeries(f"r{r}", t, np.full(days, np.nan), z, v, 20.0 * ones, 20.0 * ones))
    return out


def test_robots_that_do_not_change_raise_no_more_alarms_than_stated() -> None:
    """At most 5 % of 200 fleets without a change have a discovery."""
    rng = np.random.default_rng(4)
    alarms = sum(bool(find_changes(still(rng), CHANNELS).drifts) for _ in range(200))
    assert alarms <= 200 * 0.05 + 2.6 * np.sqrt(200 * 0.05)


def fleet_logs(
    seed: int, robots: int = 8, weeks: int = 26, grows: float = 0.0, since: int = 9, jump: float = 0.0
) -> tuple[Truth, list[LogFactors]]:
    """Make weekly logs; friction of joint 1 of robot 0 grows, and the gain of joint 2 of robot 1 jumps."""
    rng = np.random.default_rng(seed)
    made = Truth(2, rng, log_std=0.02, noise=0.1)
    quick, logs = QuickLogs(made, count=400), []
    for r in range(robots):
        beta, gain = made.robot()
        for k in range(weeks):
            now, g = beta.copy(), gain.copy()
            if r == 0:
                now[[3, 4]] *= 1.0 + grows * max(k - since, 0) / (weeks - 1 - since)
            if r == 1 and k >= since:
                g[1] += jump
            logs.append(quick.log(f"r{r}", now, g, START + WEEK * k + rng.uniform(0.0, 3600.0)))
    return made, logs


@cache
def changed() -> FleetDrift:
    made, logs = fleet_logs(2, grows=0.1, jump=0.06)
    return fleet_drift(pool(made.design, logs), logs)


def test_growing_friction_is_found_with_its_date() -> None:
    told = [d for d in changed().drifts if d.robot == "r0"]
    assert [(d.joint, d.how) for d in told] == [("joint1", "growth")]
    assert told[0].what in ("friction", "viscous", "coulomb")
    assert told[0].earliest - WEEK < START + 9 * WEEK < told[0].latest + WEEK
    if told[0].what == "friction":
        assert told[0].relative == pytest.approx(0.1, abs=3.0 * told[0].relative_error)
    assert "has increased by" in told[0].sentence
    assert "growing since 202" in told[0].sentence


def test_a_gain_that_jumps_is_found_with_its_date() -> None:
    told = [d for d in changed().drifts if d.robot == "r1"]
    assert [(d.joint, d.what, d.how) for d in told] == [("joint2", "gain", "step")]
    assert told[0].relative == pytest.approx(0.06, abs=3.0 * told[0].relative_error)
    assert told[0].earliest <= START + 9.01 * WEEK <= told[0].latest + 1.01 * WEEK


def test_other_robots_have_no_drift() -> None:
    assert {d.robot for d in changed().drifts} == {"r0", "r1"}
    found = changed()
    assert len(found.series) == 8 * 2 * 5
    assert found.joints == 16


@pytest.mark.parametrize("measured", [False, True])
def test_warmth_is_no_drift(measured: bool) -> None:
    """Friction is 40 % higher when cold, and later logs are earlier in the day, or at a lower temperature."""
    rng = np.random.default_rng(6)
    made = Truth(2, rng, log_std=0.01, noise=0.1)
    quick, logs = QuickLogs(made, count=400), []
    for r in range(8):
        beta, gain = made.robot()
        for k in range(20):
            midnight = START - START % 86400.0 + WEEK * k
            for hour in (0.0, 3.0 * rng.uniform() * (1.0 - k / 25.0)):
                cold = np.exp(-hour * 3600.0 / 2400.0) if not measured else k / 20.0
                now = beta.copy()
                now[[3, 4, 9, 10]] *= 1.0 + 0.4 * cold
                warmth = {"temperature": 30.0 - 10.0 * cold} if measured else {}
                logs.append(quick.log(f"r{r}", now, gain, midnight + 6 * 3600.0 + hour * 3600.0, **warmth))
    assert not fleet_drift(pool(made.design, logs), logs).drifts


def test_without_dates_or_with_one_day_there_are_no_drifts() -> None:
    made, logs = fleet_logs(7, robots=3, weeks=4)
    fleet = pool(made.design, logs, ["stored"])
    undated = [log.with_table_values(log.robot) for log in logs]
    assert not fleet_drift(fleet, undated).series
    same = [log.with_table_values(log.robot, date=START) for log in logs]
    found = fleet_drift(fleet, [*same, skipped_log("Empty.").with_table_values("r0", date=START)])
    assert not found.drifts
    assert found.joints == 0
    assert all(len(s.dates) == 1 and s.p == 1.0 for s in found.series)
    assert not fleet_drift(fleet, logs[:1]).drifts


@pytest.mark.proof
def test_fleets_without_a_change_have_few_false_alarms() -> None:
    alarms = 0
    for seed in range(100):
        made, logs = fleet_logs(100 + seed, robots=8, weeks=20)
        alarms += bool(fleet_drift(pool(made.design, logs), logs).drifts)
    assert alarms <= 100 * 0.05 + 2.6 * np.sqrt(100 * 0.05)


UNLOADED = (
    "ident__{date:%y_%m_%d}?*0sec_*harm.parquet", "ident__{date:%y_%m_%d}_*harm50sec.parquet",
    "ident__{date:%y_%m_%d}_free.parquet", "ident__{date:%y_%m_%d}?unload.parquet",
)  # fmt: skip


@pytest.mark.proof
@pytest.mark.parametrize("rubs", [False, True])
def test_two_months_of_a_real_arm(tmp_path: Path, rubs: bool) -> None:
    """Sixteen runs of a UR10e on eight days, four with a stated load, have no change and no wrong mapping.

    If the friction of the second joint is a fifth higher from 12 February on, only this is found.
    """
    data = real_logs("ur10e")
    folder = tmp_path / "logs"
    folder.mkdir()
    for file in data.glob("ident__*.parquet"):
        table = pq.read_table(file)
        if rubs and file.name >= "ident__20_02_12":
            at = table.column_names.index("i2")
            more = 0.2 * 27.5 / 11.976 * np.sign(table["dq2"].to_numpy())  # its friction is 27.5 N m
            table = table.set_column(at, "i2", pa.array(table["i2"].to_numpy() + more))
        pq.write_table(table, folder / file.name)
    loads = ", ".join(
        f'{{files = "{folder}/ident__{{date:%y_%m_%d}}{end}.parquet", load = "{load}"}}'
        for end, load in (("*Load", "2.8 kg"), ("?load_2600", "2.6 kg"), ("?load", "2.8 kg"))
    )
    (tmp_path / "fleet.toml").write_text(
        f"""
        [models.ur10e]
        description = "{data}/robot.urdf"
        [models.ur10e.mapping]
        torque_constants = [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]
        [robots.lab]
        logs = [{", ".join(f'"{folder}/{name}"' for name in UNLOADED)}, {loads}]
        """
    )
    found = identify_fleet(tmp_path / "fleet.toml", workers=0)
    assert len(found.factors.logs) == 16
    assert not found.skipped
    told = found.robot_types["ur10e"].judged
    assert not told.odd
    if not rubs:
        assert not told.outliers
        assert not told.drift.drifts
        return
    assert {(d.joint, d.how) for d in told.drift.drifts} == {("shoulder_lift_joint", "step")}
    one = told.drift.drifts[0]
    assert datetime.fromtimestamp(one.since, UTC).date().isoformat() == "2020-02-12"
    assert one.relative == pytest.approx(0.2, abs=2.5 * one.relative_error)
