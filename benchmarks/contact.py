"""Contact on a real robot: the observer beside a plain threshold on the torque residual, on the UR10e's records.

    python benchmarks/contact.py              # about two minutes; needs $STEELYARD_DATA/ur10e and gcc

The model comes from five excitation runs, the limits from seven others; all runs without contact are then watched for
false alarms, and the two runs in which somebody pushes the arm for contacts. Forces of known strength are planted in
the records without contact, too, for curves of detection against false alarms (docs/theory/contact.md).

What is plain: the measured torque less the model's at positions, velocities and differences of velocities, against one
number per joint, set by the same law of tails on the same runs. A second one has the observer's low-pass before it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import machine, save, show
from contact_figure import curves_figure, records_figure
from observer_in_c import c_microseconds

from steelyard import identify, load_robot, read_log
from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.poses import link_poses
from steelyard.watch import threshold
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.monitor_base import WatchSetup
from steelyard.watch.monitors.contact import ContactMonitor
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.residual_scale import ResidualScale
from steelyard.watch.uncertain_model import UncertainModel, load_uncertain_model

DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "ur10e"
MAP = Path(__file__).parent / "maps" / "ur10e.toml"
# The runs that the mapping has windows for make the model; all other unloaded excitation runs calibrate.
FITTED = [
    *("ident__20_02_10-30sec_12harm", "ident__20_02_12-40sec_12harm", "ident__20_02_12-50sec_12harm"),
    *("ident__20_02_05-20sec_8harm", "ident__20_02_19_14harm50sec"),
]
CALIBRATED = [
    *("ident__19_12_23_free", "ident__20_01_31-unload", "ident__20_02_05-20sec_12harm"),
    *("ident__20_02_06-20sec_10harm", "ident__20_02_06-20sec_5harm", "ident__20_02_10-20sec_7harm"),
    "ident__20_02_19_15harm50sec",
]
# Neither fitted nor calibrated on, of other days: postures and moves between them, and joints swept one by one.
UNSEEN = [
    *(f"val__20_01_17-p{k}" for k in range(1, 11)),
    "val__20_01_17-ptp_10_points",
    *(f"joint__20_01_22-joint_{k}" for k in range(1, 7)),
]
# Moments (s from the beginning of the record) at which, by eye, all is still quiet before a push begins.
PUSHES = {
    "collision__20_01_22-push_pose_1": (1.6, 4.4, 8.1, 11.6),
    "collision__20_01_22-push_pose_2": (0.2, 2.2, 4.6, 7.7, 11.2, 14.1),
}
PER_HOUR = 1.0 / 3600.0
WAYS = ("observer", "plain", "plain, low-passed")


def batches(watched: UncertainModel, name: str) -> list[SampleBatch]:
    log = read_log(DATA / f"{name}.parquet", watched.model.robot, mapping=MAP)
    return threshold.log_batches(log, watched.model.robot)


@dataclass
class Judges:
    """The three ways, each from a batch to the share of its limit (at one false alarm an hour) that is reached."""

    watched: UncertainModel
    calibration: threshold.ContactCalibration
    rate_hz: float = PER_HOUR

    def __post_init__(self) -> None:
        pieces = [b for name in CALIBRATED for b in batches(self.watched, name)]
        self.plain_limits: dict[str, Array] = {}
        for way in WAYS[1:]:
            residuals = [self.residual(b, way) for b in pieces]
            level = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0))
            peaks = np.concatenate(
                [threshold._peaks(b.t, np.abs(r) / level) for b, r in zip(pieces, residuals, strict=True)]
            )
            tails = np.array([threshold._tail(row) for row in peaks.T])
            law = threshold.ContactCalibration(self.calibration.joints, 1.0, self.calibration.coefficients, tails)
            self.plain_limits[way] = level * law.limits(self.rate_hz)

    def residual(self, batch: SampleBatch, way: str) -> Array:
        """The model's torque less the measured one, with accelerations from differences; filtered on request."""
        h = np.diff(batch.t)
        ddq = np.concatenate([np.zeros((1, batch.joints)), np.diff(batch.dq, axis=0) / h[:, None]])
        e = self.watched.model.torque(batch.q, batch.dq, ddq, float(np.median(h))) - batch.tau
        if way == "plain":
            return np.asarray(e)
        gains = 1.0 - np.exp(-2.0 * np.pi * self.calibration.cutoff_hz * h)
        out = e.copy()
        for k in range(1, len(e)):
            out[k] = out[k - 1] + gains[k - 1] * (e[k] - out[k - 1])
        return np.asarray(out)

    def shares(self, batch: SampleBatch, way: str) -> Array:
        if way != "observer":
            return np.asarray(np.max(np.abs(self.residual(batch, way)) / self.plain_limits[way], axis=1))
        observer = MomentumObserver(self.watched.model, self.calibration.cutoff_hz)
        terms = ResidualScale(self.watched, observer).update(observer.observe(batch))
        limits = self.calibration.limits(self.rate_hz) * terms.sigma(self.calibration.coefficients)
        return np.asarray(np.max(np.abs(terms.residual) / limits, axis=1))


def alarmed_seconds(t: Array, shares: Array, level: float = 1.0) -> int:
    """Seconds in which `shares` are beyond a level: alarms that run into one another are not counted as one."""
    return len(np.unique(np.floor(t[shares > level])))


def told(
    watched: UncertainModel, calibration: threshold.ContactCalibration, batch: SampleBatch, rate: float
) -> list[Any]:
    """The events of the contact part itself."""
    part = ContactMonitor(WatchSetup(watched.model, watched.run, rate, calibration))
    part.update(MomentumObserver(watched.model, calibration.cutoff_hz).observe(batch))
    return part.fetch_events()


def onset(batch: SampleBatch, quiet: float) -> float:
    """When a push becomes visible, by a rule that looks back from it: on the joint whose measured torque changes most
    within 1.2 s after `quiet`, the last moment before half of that change at which a centred mean of five samples is
    within 5 % of the change from its median over the 0.3 s before `quiet`."""
    t = batch.t - batch.t[0]
    smooth = np.stack([np.convolve(x, np.ones(5) / 5.0, "same") for x in batch.tau.T], axis=1)
    smooth[:2], smooth[-2:] = batch.tau[:2], batch.tau[-2:]
    base = np.median(batch.tau[(t > quiet - 0.3) & (t <= quiet)], axis=0)
    after = (t > quiet) & (t < quiet + 1.2)
    change = np.where(after[:, None], smooth - base, 0.0) / np.maximum(np.std(batch.tau, axis=0), 1e-9)
    joint = int(np.argmax(np.max(np.abs(change), axis=0)))
    away = np.abs(smooth[:, joint] - base[joint])
    most = float(np.max(away[after]))
    half = int(np.flatnonzero(after & (away > 0.5 * most))[0])
    return float(t[np.flatnonzero(away[:half] < 0.05 * most)[-1]])


def planted(watched: UncertainModel, batch: SampleBatch, newtons: float, seed: int) -> tuple[SampleBatch, list[float]]:
    """The record with pushes of so many newtons, in random directions, at random points of the links from the second
    on: every 3 s one of 0.6 s that rises within 50 ms. The motion stays: a stiff controller holds it."""
    rng, robot = np.random.default_rng(seed), watched.model.robot
    tau, begins = batch.tau.copy(), []
    for begin in np.arange(batch.t[0] + 1.5, batch.t[-1] - 1.0, 3.0):
        link = int(rng.integers(1, len(robot.links)))
        way = rng.normal(size=3)
        force = newtons * way / np.linalg.norm(way)
        share = rng.uniform(0.3, 1.0)
        ramp = np.clip(np.minimum(batch.t - begin, begin + 0.6 - batch.t) / 0.05, 0.0, 1.0)
        at = np.flatnonzero(ramp)
        rotations, origins = link_poses(robot, batch.q[at])
        child = next((k for k, other in enumerate(robot.links) if other.parent == link), None)
        end = (
            origins[:, child]
            if child is not None
            else origins[:, link] + rotations[:, link] @ np.array([0.0, 0.0, 0.1])
        )
        x = origins[:, link] + share * (end - origins[:, link])
        for k in robot.ancestors(link):
            axis = rotations[:, k] @ robot.links[k].axis
            tau[at, robot.links[k].coordinate] -= ramp[at] * (np.cross(axis, x - origins[:, k]) @ force)
        begins.append(float(begin))
    return SampleBatch(batch.t, batch.q, batch.dq, tau, batch.fresh), begins


def python_microseconds(
    watched: UncertainModel, calibration: threshold.ContactCalibration, batch: SampleBatch
) -> float:
    """Of observer and contact in Python, per sample, in batches of 50."""
    observer = MomentumObserver(watched.model, calibration.cutoff_hz)
    part = ContactMonitor(WatchSetup(watched.model, watched.run, PER_HOUR, calibration))
    best = np.inf
    for _ in range(3):
        start = time.thread_time()
        for k in range(0, len(batch), 50):
            cut = slice(k, k + 50)
            piece = SampleBatch(batch.t[cut], batch.q[cut], batch.dq[cut], batch.tau[cut], k == 0)
            seen: ObservedBatch = observer.observe(piece)
            part.update(seen)
        best = min(best, (time.thread_time() - start) / len(batch))
    return 1e6 * best


def curves(judges: Judges) -> dict[str, Any]:
    """Detection of planted contacts and false alarms an hour, as limits are moved, on runs that nobody has seen."""
    levels = np.geomspace(0.1, 2.0, 40)
    quiet = [b for name in UNSEEN for b in batches(judges.watched, name)]
    hours = sum(b.t[-1] - b.t[0] for b in quiet) / 3600.0
    out: dict[str, Any] = {"levels": levels.tolist(), "hours": hours, "ways": {}}
    for way in WAYS:
        clean = [(b, judges.shares(b, way)) for b in quiet]
        false = [sum(alarmed_seconds(b.t, s, level) for b, s in clean) / hours for level in levels]
        found: dict[str, Any] = {}
        for newtons in (10.0, 20.0, 40.0):
            hits, late, count = np.zeros(len(levels)), [[] for _ in levels], 0
            for k, (b, _) in enumerate(clean):
                pushed, begins = planted(judges.watched, b, newtons, k)
                shares = judges.shares(pushed, way)
                count += len(begins)
                for begin in begins:
                    before = (b.t >= begin - 0.3) & (b.t < begin)
                    inside = (b.t >= begin) & (b.t < begin + 0.6)
                    for i, level in enumerate(levels):
                        first = np.flatnonzero(inside & (shares > level))
                        if len(first) and not np.any(shares[before] > level):
                            hits[i] += 1
                            late[i].append(1000.0 * (b.t[first[0]] - begin))
            found[f"{newtons:g}"] = {
                "share": (hits / count).tolist(), "count": count,
                "median_ms": [float(np.median(x)) if x else None for x in late],
            }  # fmt: skip
        out["ways"][way] = {"false_per_hour": false, "found": found}
    return out


def at_rate(curve: dict[str, Any], way: str, newtons: str, rate: float) -> tuple[float, float | None, float]:
    """Detection, delay (ms) and level at the lowest limits that give at most `rate` alarmed seconds an hour."""
    false = np.array(curve["ways"][way]["false_per_hour"])
    k = int(np.append(np.flatnonzero(false > rate), -1).max()) + 1
    k = min(k, len(false) - 1)
    found = curve["ways"][way]["found"][newtons]
    return found["share"][k], found["median_ms"][k], curve["levels"][k]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    robot = load_robot(DATA / "robot.urdf")
    found = identify(robot, [read_log(DATA / f"{n}.parquet", robot, mapping=MAP) for n in FITTED])
    folder = Path(tempfile.mkdtemp()) / "run"
    found.save(folder)
    watched = load_uncertain_model(folder)
    calibration = threshold.calibrate_contact(
        watched, [read_log(DATA / f"{n}.parquet", robot, mapping=MAP) for n in CALIBRATED]
    )
    judges = Judges(watched, calibration)
    results: dict[str, Any] = {
        "cutoff_hz": calibration.cutoff_hz,
        "calibrated_s": calibration.seconds,
        "limits_in_sigma": {"1/hour": calibration.limits(PER_HOUR).tolist(),
                            "1/day": calibration.limits(PER_HOUR / 24.0).tolist()},
        "false_alarms": {},
        "pushes": [],
    }  # fmt: skip
    for group, names in (("fitted", FITTED), ("calibrated", CALIBRATED), ("unseen", UNSEEN)):
        pieces = [b for name in names for b in batches(watched, name)]
        seconds = sum(float(b.t[-1] - b.t[0]) for b in pieces)
        row: dict[str, Any] = {"seconds": seconds}
        for label, rate in (("1/hour", PER_HOUR), ("1/day", PER_HOUR / 24.0)):
            row[label] = sum(e.kind == "contact" for b in pieces for e in told(watched, calibration, b, rate))
        for way in WAYS[1:]:
            row[way] = sum(alarmed_seconds(b.t, judges.shares(b, way)) for b in pieces)
        results["false_alarms"][group] = row
    curve = curves(judges)
    # The plain ways at the lowest limits at which they, too, have no false alarm in the unseen runs: in hindsight.
    level = {way: at_rate(curve, way, "20", 0.0)[2] for way in WAYS}
    results["levels_without_false_alarms"] = level
    for name, moments in PUSHES.items():
        (batch,) = batches(watched, name)
        t = batch.t - batch.t[0]
        events = {rate: [e for e in told(watched, calibration, batch, rate) if e.kind == "contact"]
                  for rate in (PER_HOUR, PER_HOUR / 24.0)}  # fmt: skip
        quick = [e for e in told(watched, calibration, batch, 10.0 * PER_HOUR) if e.kind == "contact"]
        results.setdefault("contacts_at_10_an_hour", []).append(len(quick))
        shares = {way: judges.shares(batch, way) for way in WAYS}
        for k, calm in enumerate(moments):
            begin = onset(batch, calm)
            until = (*moments, t[-1])[k + 1]
            row = {"record": name, "onset_s": begin}
            for label, rate in (("1/hour", PER_HOUR), ("1/day", PER_HOUR / 24.0)):
                hit = [e for e in events[rate] if calm < e.detail["found"] - batch.t[0] < until]
                row[f"delay_ms {label}"] = 1000.0 * (hit[0].detail["found"] - batch.t[0] - begin) if hit else None
                row["link"] = hit[0].detail["link"] if hit else row.get("link")
            for way in WAYS[1:]:
                crossed = np.flatnonzero((t > calm) & (t < until) & (shares[way] > level[way]))
                rose = len(crossed) and not np.any(shares[way][(t > calm - 0.2) & (t <= calm)] > level[way])
                row[way] = 1000.0 * float(t[crossed[0]] - begin) if rose else None
            results["pushes"].append(row)
        records_figure(batch, shares, [onset(batch, q) for q in moments], events[PER_HOUR], f"docs/images/{name}.svg")
    results["curves"] = curve
    curves_figure(curve, "docs/images/contact-curves.svg")
    (batch,) = batches(watched, FITTED[2])
    results["c_us_per_sample"] = c_microseconds(watched.model, batch)
    results["python_us_per_sample"] = python_microseconds(watched, calibration, batch)
    tell(results)
    save("contact", {"machine": machine(), **results})


def tell(results: dict[str, Any]) -> None:
    rows = [[k, f"{v['seconds']:.0f}", *(str(v[x]) for x in ("1/hour", "1/day", *WAYS[1:]))]
            for k, v in results["false_alarms"].items()]  # fmt: skip
    show("False alarms in runs without contact", ["runs", "s", "1/hour", "1/day", *WAYS[1:]], rows)
    keys = [k for k in results["pushes"][0] if k not in ("record", "onset_s", "link")]
    rows = [[p["record"][-6:], f"{p['onset_s']:.2f}", str(p["link"]),
             *("–" if p[k] is None else f"{p[k]:.0f}" for k in keys)] for p in results["pushes"]]  # fmt: skip
    show("Pushes: delay after the visible onset, ms", ["record", "onset, s", "link", *keys], rows)
    rows = []
    for newtons in ("10", "20", "40"):
        for rate in (0.0, 30.0, 300.0):
            row = [newtons, f"{rate:g}"]
            for way in WAYS:
                share, late, _ = at_rate(results["curves"], way, newtons, rate)
                row.append(f"{100.0 * share:.0f} %" + (f", {late:.0f} ms" if late is not None else ""))
            rows.append(row)
    show("Planted contacts found", ["N", "alarmed s an hour", *WAYS], rows)
    print(f"C observer {results['c_us_per_sample']:.2f} µs a sample; Python, observer and contact, batches of 50: "
          f"{results['python_us_per_sample']:.1f} µs")  # fmt: skip


if __name__ == "__main__":
    main()
