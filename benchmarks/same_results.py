"""Results before and after a change of the code: the same logs identified by both, and every difference listed.

    python benchmarks/same_results.py logs DIR              # write logs of the built-in robots
    python benchmarks/same_results.py record DIR OUT        # identify them (and STEELYARD_DATA's, where it is set)
    python benchmarks/same_results.py compare BEFORE AFTER  # values in standard errors, scores, verdicts, findings

`record` uses the command of the interpreter it runs in, so each side records itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

MAPS = Path(__file__).parent / "maps"
TX40_TERMS = (
    "rotor,viscous,coulomb,offset,rotor@drive:where=motor6,viscous@drive:where=motor6,coulomb@drive:where=motor6"
)
TIAGO = "torso_lift_joint," + ",".join(f"arm_{k}_joint" for k in range(1, 8))
# Folder, logs, options. The plain default, and each road that shares its preparation: tuned, robust, other schemes.
REAL: dict[str, tuple[str, list[str], list[str]]] = {
    "ur10e": ("ur10e", ["ident__20_02_10-30sec_12harm"],
              ["--validate", "{}/ident__20_02_12-50sec_12harm.parquet", "--map", str(MAPS / "ur10e.toml")]),
    "ur10e-two-logs": ("ur10e", ["ident__20_02_10-30sec_12harm", "ident__20_02_12-40sec_12harm"],
                       ["--validate", "{}/val__20_01_17-ptp_10_points.parquet", "--map", str(MAPS / "ur10e.toml"),
                        "--significant"]),
    "ur10e-tune": ("ur10e", ["ident__20_02_10-30sec_12harm"],
                   ["--validate", "{}/ident__20_02_12-50sec_12harm.parquet", "--map", str(MAPS / "ur10e.toml"),
                    "--tune"]),
    "ur10e-huber": ("ur10e", ["ident__20_02_10-30sec_12harm"],
                    ["--map", str(MAPS / "ur10e.toml"), "--estimator", "huber", "--holdout", "0.3"]),
    "ur10e-momentum": ("ur10e", ["ident__20_02_10-30sec_12harm"],
                       ["--map", str(MAPS / "ur10e.toml"), "--scheme", "momentum", "--holdout", "0.3"]),
    "ur10e-plain": ("ur10e", ["ident__20_02_10-30sec_12harm"], ["--map", str(MAPS / "ur10e.toml"), "--plain"]),
    "panda": ("panda_gaz", ["trajectory_1"], ["--holdout", "0.3", "--terms", "viscous,coulomb,offset"]),
    "tx40": ("staubli_tx40", ["trajectory"],
             ["--holdout", "0.3", "--map", str(MAPS / "tx40.toml"), "--terms", TX40_TERMS]),
    "tiago": ("tiago", ["trajectory"], ["--holdout", "0.3", "--map", str(MAPS / "tiago.toml"), "--joints", TIAGO]),
    "emps": ("emps", ["ident"], ["--validate", "{}/val_pulses.parquet"]),
    "emps-free-ols": ("emps", ["ident"], ["--validate", "{}/val_pulses.parquet", "--free", "--estimator", "ols"]),
}  # fmt: skip


def write_logs(folder: Path) -> None:
    """A Fourier motion of every built-in robot, with friction and noise; 20 s at 500 Hz."""
    import steelyard as sy
    from steelyard.parameters import Coulomb

    folder.mkdir(parents=True, exist_ok=True)
    for name in sy.builtin_names():
        robot = sy.load_robot(name)
        n, rng = robot.dof, np.random.default_rng(7)
        links = len(robot.links)
        inertia = np.tile([2.0, 0.1, 0.05, 0.2, 0.2, 0.01, 0.25, 0.02, -0.01, 0.15], links)
        if robot.has_inertia:
            inertia = np.asarray(robot.inertial_parameters, dtype=float)
        bound = sy.terms(robot, "rotor", "viscous", Coulomb(smooth=0.01), "offset")
        theta = np.r_[
            inertia, rng.uniform(0.3, 1, n), rng.uniform(1, 4, n), rng.uniform(2, 6, n), rng.uniform(-1, 1, n)
        ]
        rates = 2 * np.pi * np.array([0.1, 0.25, 0.35, 0.6])
        size, phase = rng.uniform(0.05, 0.35, (4, n)), rng.uniform(0, 6, (4, n))
        if any(j.kind == "prismatic" for j in robot.joints):
            size *= 0.3
        t = np.arange(10_000) / 500.0
        angle = t[:, None, None] * rates[:, None] + phase
        q, dq = (size * np.sin(angle)).sum(1), (size * rates[:, None] * np.cos(angle)).sum(1)
        ddq = (-size * rates[:, None] ** 2 * np.sin(angle)).sum(1)
        tau = sy.Model(robot, bound, theta).torque(q, dq, ddq)
        tau += 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
        q = q + 1e-5 * rng.normal(size=q.shape)
        dq = dq + 1e-3 * rng.normal(size=q.shape)
        head = ["t", *(f"{x}{k + 1}" for x in ("q", "dq", "tau") for k in range(n))]
        np.savetxt(folder / f"{name}.csv", np.c_[t, q, dq, tau], delimiter=",", header=",".join(head), comments="")


def record(logs: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    jobs = {p.stem: [p.stem, str(p), "--holdout", "0.25"] for p in sorted(logs.glob("*.csv"))}
    data = os.environ.get("STEELYARD_DATA")
    for name, (folder, files, options) in REAL.items() if data else ():
        place = Path(str(data)) / folder
        more = [o.replace("{}", str(place)) for o in options]
        jobs[name] = [str(place / "robot.urdf"), *(str(place / f"{f}.parquet") for f in files), *more]
    for name, arguments in jobs.items():
        target = out / f"{name}.json"
        if target.exists():
            continue
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "steelyard", "identify", *arguments, "--json"],
            capture_output=True, text=True,
        )  # fmt: skip
        target.write_text(done.stdout if done.returncode == 0 else json.dumps({"error": done.stderr.strip()}))
        print(name, "rc", done.returncode, flush=True)


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Every leaf that differs, by more than rounding where it is a number."""
    if isinstance(before, dict) and isinstance(after, dict):
        out = [f"{path}.{k}: only {'before' if k in before else 'after'}" for k in before.keys() ^ after.keys()]
        return out + [d for k in before.keys() & after.keys() for d in differences(before[k], after[k], f"{path}.{k}")]
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return [f"{path}: {len(before)} entries, then {len(after)}"]
        return [
            d for k, (a, b) in enumerate(zip(before, after, strict=True)) for d in differences(a, b, f"{path}[{k}]")
        ]
    if isinstance(before, float) and isinstance(after, float | int):
        close = abs(before - after) <= 1e-6 * max(abs(before), abs(after), 1e-9)
        return [] if close else [f"{path}: {before:.8g} → {after:.8g}"]
    return [] if before == after else [f"{path}: {str(before)[:70]!r} → {str(after)[:70]!r}"]


def compare(before: Path, after: Path) -> None:
    for path in sorted(before.glob("*.json")):
        if not (after / path.name).exists():
            print(f"{path.stem}: not recorded after")
            continue
        a, b = (json.loads((folder / path.name).read_text()) for folder in (before, after))
        for one in (a, b):
            one.pop("versions", None)
        worst = float("nan")
        if "base_parameters" in a and "base_parameters" in b:
            rows = list(zip(a["base_parameters"]["list"], b["base_parameters"]["list"], strict=False))
            worst = max(abs(x["value"] - y["value"]) / max(x["standard_error"], 1e-300) for x, y in rows)
        found = differences(a, b)
        others = [d for d in found if ".rounding_shift" not in d]
        print(f"{path.stem}: largest change {worst:.1e} standard errors; {len(others)} leaves differ by more than 1e-6")
        for line in others[:12]:
            print("    " + line)


if __name__ == "__main__":
    verb, *places = sys.argv[1:]
    {"logs": write_logs, "record": record, "compare": compare}[verb](*map(Path, places))
