"""Our delivered models and the usual baseline on logs of real robots, both scored in both ways.

    STEELYARD_DATA=... python benchmarks/scoreboard.py            # the splits of the data's READMEs
    STEELYARD_DATA=... python benchmarks/scoreboard.py --unseen   # UR10e: the logs that nobody has looked at

The baseline is written here anew with Pinocchio and NumPy (`scoreboard_baseline.py`) and reproduces the figures that
are published with the data. Score (a) sends both torques through the score's filter; (b) holds the prediction, made
from the motion filtered at the score's cut-off, against the filtered torque as it is. Our settings are chosen by
`tune` on the identification data alone.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import save, show
from scoreboard_baseline import Baseline, Recipe, emps_baseline

from steelyard.assessment.holdout import keep_blocks, keep_last
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import prepare
from steelyard.signals.read import read_log

Array = np.ndarray
Split = Callable[[Array], Array]
MAPS = Path(__file__).parent / "maps"
TX40_TERMS = ("rotor", "viscous", "coulomb", "offset", "rotor@drive:where=motor6", "viscous@drive:where=motor6",
              "coulomb@drive:where=motor6")  # fmt: skip


def last(share: float) -> Split:
    return lambda t: np.arange(len(t)) >= int((1.0 - share) * len(t))


def every_third(seconds: float) -> Split:
    return lambda t: np.floor((t - t[0]) / seconds + 1e-9).astype(int) % 3 == 2


@dataclass(frozen=True)
class Case:
    """One README's data set: the recipe of its baseline, its logs or its split, and our options."""

    folder: str
    recipe: Recipe
    train: str
    test: tuple[str, ...] = ()
    split: Split | None = None
    holdout: Callable[[Log], tuple[Log, Log]] | None = None
    mapping: str = ""
    joints: tuple[str, ...] | None = None
    terms: tuple[str, ...] | None = None
    published: tuple[tuple[float, ...], ...] = ()


TIAGO = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
UR = Case(
    "ur10e",
    Recipe(cutoff_hz=5.0, rate=100.0, trim=0.2),
    "ident__20_02_10-30sec_12harm",
    ("ident__20_02_12-50sec_12harm", "val__20_01_17-ptp_10_points"),
    mapping="ur10e.toml",
    published=((2.215, 2.965, 1.117, 0.318, 0.427, 0.265), (1.894, 2.799, 1.172, 0.278, 1.065, 1.322)),
)
CASES = {
    "UR10e": UR,
    "Panda": Case(
        "panda_gaz",
        Recipe(cutoff_hz=10.0, rate=1000.0, trim=0.2, step=5, rotor=False),
        "trajectory_1",
        split=last(0.3),
        holdout=lambda log: keep_last(log, 0.3),
        terms=("viscous", "coulomb", "offset"),
        published=((0.147, 0.212, 0.134, 0.171, 0.068, 0.031, 0.050),),
    ),
    "TX40, last 30 %": Case(
        "staubli_tx40",
        Recipe(cutoff_hz=20.0, rate=5000.0, trim=0.05, step=20, measured=False, coupled=(4, 5)),
        "trajectory",
        split=last(0.3),
        holdout=lambda log: keep_last(log, 0.3),
        mapping="tx40.toml",
        terms=TX40_TERMS,
        published=((1.800, 4.305, 1.115, 0.578, 0.956, 1.139),),
    ),
    "TX40, blocks": Case(
        "staubli_tx40",
        Recipe(cutoff_hz=20.0, rate=5000.0, trim=0.05, step=20, measured=False, coupled=(4, 5)),
        "trajectory",
        split=every_third(0.5),
        holdout=lambda log: keep_blocks(log, 0.5, 3),
        mapping="tx40.toml",
        terms=TX40_TERMS,
        published=((1.474, 4.228, 1.482, 0.783, 1.175, 0.839),),
    ),
    "TIAGo": Case(
        "tiago",
        Recipe(cutoff_hz=3.0, rate=100.0, window_after=True),
        "trajectory",
        split=last(0.3),
        holdout=lambda log: keep_last(log, 0.3),
        mapping="tiago.toml",
        joints=TIAGO,
        published=((0.231, 0.545, 1.720, 0.701, 0.925),),
    ),
}
# UR10e without payload; none of these took part in any choice of ours before they were scored here.
UNSEEN = (
    "ident__20_02_12-40sec_12harm", "ident__20_02_19_14harm50sec", "ident__20_02_19_15harm50sec",
    "ident__20_02_05-20sec_12harm", "ident__20_02_05-20sec_8harm", "ident__20_02_06-20sec_10harm",
    "ident__20_02_06-20sec_5harm", "ident__20_02_10-20sec_7harm", "ident__19_12_23_free", "ident__20_01_31-unload",
    *(f"val__20_01_17-p{k}" for k in range(1, 11)),
)  # fmt: skip


def rmse(error: Array) -> Array:
    return np.sqrt(np.mean(error**2, axis=0))


def ours(case: Case, data: Path, tune: bool) -> tuple[Identification, list[Log]]:
    """Identified as `steelyard identify` does; the logs that it was judged by."""
    folder = data / case.folder
    robot = load_robot(folder / "robot.urdf", joints=case.joints)
    mapping = str(MAPS / case.mapping) if case.mapping else None
    train = read_log(folder / f"{case.train}.parquet", robot, mapping)
    test = [read_log(folder / f"{name}.parquet", robot, mapping) for name in case.test]
    if case.holdout is not None:
        train, held = case.holdout(train)
        test = [held]
    found = identify(robot, train, test, terms=case.terms, score_cutoff_hz=case.recipe.cutoff_hz, tune=tune)
    return found, test


def scored_as_published(found: Identification, log: Log, recipe: Recipe) -> Array:
    """(b): the motion through the score's filter, the prediction as it comes out."""
    settings = replace(found.settings.preparation, decimation=1, trim=recipe.trim, mask=0.0)
    used = np.flatnonzero(found.robot.torque_used)
    errors = []
    for m in prepare(log, settings, recipe.cutoff_hz):
        errors.append((m.filter(m.tau) - found.model.torque(m.q, m.dq, m.ddq))[m.keep][:, used])
    return rmse(np.concatenate(errors))


def compare(name: str, case: Case, data: Path, tune: bool) -> dict[str, Any]:
    found, logs = ours(case, data, tune)
    used = np.flatnonzero(found.robot.torque_used)
    baseline = Baseline(data / case.folder, case.recipe, case.joints)
    train = baseline.read(case.train)
    held = None if case.split is None else case.split(train.t)
    baseline.fit(train, None if held is None else ~held)
    labels = case.test or (f"{case.train}, held back",)
    out: dict[str, Any] = {"tuning": None if found.tuning is None else found.tuning.to_json()}
    for k, (label, log) in enumerate(zip(labels, logs, strict=True)):
        theirs = baseline.read(label) if case.split is None else train
        rows = np.ones(len(theirs.t), bool) if held is None else held
        both = {"a": baseline.errors(theirs, True)[rows][:, used], "b": baseline.errors(theirs, False)[rows][:, used]}
        figures = {
            "published": list(case.published[k]) if k < len(case.published) else None,
            "baseline": {way: rmse(e).tolist() for way, e in both.items()},
            "ours": {
                "a": [j.rmse for j in found.validation[k].joints],
                "b": scored_as_published(found, log, case.recipe).tolist(),
                "free, a": [j.rmse for j in found.free_validation[k].joints],
            },
        }
        report(f"{name}: {label}", figures)
        out[label] = figures
    if found.tuning is not None:
        print(f"  {found.tuning.sentence}\n")
    return out


def report(title: str, f: dict[str, Any]) -> None:
    def cells(values: Any) -> list[str]:
        return [f"{v:.3f}" for v in values]

    a, b = (np.array(f["ours"][w]) / f["baseline"][w] for w in "ab")
    rows = [["baseline, published", *cells(f["published"]), ""]] if f["published"] else []
    if f["published"]:
        ratio = np.array(f["baseline"]["b"]) / f["published"]
        rows.append(["baseline (b) / published", *cells(ratio), f"{ratio.mean():.3f}"])
    rows += [[f"{who} ({w})", *cells(f[who][w]), ""] for w in "ab" for who in ("baseline", "ours")]
    rows.append(["ratio (a)", *cells(a), f"{a.mean():.3f}"])
    rows.append(["ratio (b)", *cells(b), f"{b.mean():.3f}"])
    if f["published"]:
        p = np.array(f["ours"]["a"]) / f["published"]
        rows.append(["ours (a) / published", *cells(p), f"{p.mean():.3f}"])
    show(title, ["RMSE, N m (N)", *(str(k + 1) for k in range(len(a))), "mean"], rows)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--unseen", action="store_true", help="UR10e: logs that took no part in any choice")
    arguments.add_argument("--plain", action="store_true", help="our defaults, without tuning")
    arguments.add_argument("--only", default="", help="one of the sets")
    chosen = arguments.parse_args()
    data = Path(os.environ["STEELYARD_DATA"])
    cases = CASES
    if chosen.unseen:
        cases = {"UR10e, unseen": replace(UR, test=UNSEEN, published=())}
    results: dict[str, Any] = {}
    for name, case in cases.items():
        if chosen.only in ("", name):
            results[name] = compare(name, case, data, not chosen.plain)
    if not chosen.unseen and chosen.only in ("", "EMPS"):
        results["EMPS"] = emps(data)
    if not chosen.only and not chosen.plain:
        save("scoreboard_unseen" if chosen.unseen else "scoreboard", results)


def emps(data: Path) -> dict[str, Any]:
    """Relative errors by the published definition: rows and torque decimated by ten after the 100 Hz filter."""
    folder = data / "emps"
    robot = load_robot(folder / "robot.urdf")
    train, test = (read_log(folder / f"{n}.parquet", robot) for n in ("ident", "val_pulses"))
    terms = ("viscous-asymmetric", "coulomb-asymmetric")
    found = identify(robot, train, [test], terms=terms, score_cutoff_hz=100.0, tune=True)
    out: dict[str, Any] = {"tuning": found.tuning.to_json() if found.tuning else None}
    predict = found.model.torque
    for label, errors in emps_baseline(folder, lambda q, dq, ddq: predict(q, dq, ddq)).items():
        out[label] = errors
    own = [s.joints[0].relative_error_percent for s in (*found.identification, *found.validation)]
    out["ours, score (a) at 100 Hz"] = own
    rows = [[k, *(f"{x:.2f}" for x in v)] for k, v in out.items() if k != "tuning"]
    show("EMPS, relative error %", ["", "identification", "pulses"], rows)
    if found.tuning is not None:
        print(f"  {found.tuning.sentence}\n")
    return out


if __name__ == "__main__":
    main()
