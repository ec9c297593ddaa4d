"""Drives from command logs: python benchmarks/actuators.py [real | plants N] [-o FOLDER]

`real` needs STEELYARD_DATA: two public servos, every gain or motion left out in turn; printed are the mean absolute
position error of closed-loop rollouts, the processor time, and the runs that are named as not predictable. With -o, a
figure per split. `plants N` simulates N drives of each friction model and of two kinds in MuJoCo, and prints how often
the structure is right, how many truths are inside their 95 %, and the errors of the delay.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import steelyard as sy

DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "actuators"
SPLITS = {"bam_xl330": "kp", "bam_sts3250": "trajectory"}
# Mean absolute errors [mrad] of least squares with friction M3 and M4 on the same splits, from the sets' own READMEs.
BASELINE = {"bam_xl330": "M3 58.3, M4 58.5 (mean)", "bam_sts3250": "M3 11.0, 6.5, 120, 208; M4 9.9, 6.7, 127, 213"}


def real(output: str) -> None:
    for name, key in SPLITS.items():
        logs = sy.read_command_logs(DATA / name / "raw.parquet", settings=DATA / name / "logs.parquet")
        print(f"{name}, left out by {key}; baseline: {BASELINE[name]} mrad")
        errors = []
        for value in dict.fromkeys(log.label(key) for log in logs):
            judges = [log for log in logs if log.label(key) == value]
            result = sy.identify_actuator([log for log in logs if log.label(key) != value], holdout=judges)
            errors.append(1e3 * result.error("hold-out"))
            chosen = next(s.label for s in result.structures if s.chosen)
            odd = [r for r in result.runs if r.role == "hold-out" and not r.predictable]
            print(
                f"  {value!s:16} fit {1e3 * result.error('fit'):6.1f} held out {errors[-1]:6.1f} mrad  "
                f"{result.cpu_seconds:5.1f} s  {chosen}  {'; '.join(f'not predictable: {r.reason}' for r in odd)}",
                flush=True,
            )
            if output:
                figure(result, f"{name} {key} {value}", Path(output))
        print(f"  mean {np.mean(errors):.1f} mrad")


def figure(result: sy.ActuatorIdentification, title: str, folder: Path) -> None:
    """Write the rollouts of the held-out runs as a page."""
    from steelyard.report import Line, Panel, Section, figure_html, line_panels, render_report

    panels = []
    for log in result.holdout:
        lines = (
            Line.of("goal", log.time, np.nan_to_num(log.goal), dashed=True),
            Line.of("measured", log.time, log.position),
            Line.of("predicted", log.time, result.rollouts[log.name]),
        )
        panels.append(Panel(f"run {log.name} {log.trajectory}", lines, y="position [rad]"))
    folder.mkdir(parents=True, exist_ok=True)
    page = render_report(title, [Section("Held-out runs", figure_html(line_panels(panels), title))])
    (folder / f"{title.replace(' ', '_')}.html").write_text(page, encoding="utf-8")


def plants(count: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "actuators"))
    import drive_plants
    from drive_plants import random_plant

    # MuJoCo's step shifts time by half of it: the delay must be known much better than its interval.
    drive_plants.STEP = 2.5e-5

    right = total = inside = truths = 0
    delays = []
    for kind in ("voltage", "torque"):
        for friction in ("M1", "M2", "M3", "M4", "M5", "M6"):
            for seed in range(100, 100 + count):
                plant = random_plant(kind, friction, seed)
                result = sy.identify_actuator(plant.record(seed), kind)
                same = result.model.friction == friction and len(_effects(result)) == 1
                right, total = right + same, total + 1
                delays.append(1e3 * abs(result.model["delay"] - plant.truth["delay"]))
                if same:
                    for name in result.model.estimated:
                        low, high = result.model.interval(name)
                        inside, truths = inside + (low <= plant.truth[name] <= high), truths + 1
            print(
                f"{kind} {friction}: structure right {right}/{total}, inside 95 % {inside}/{truths}, delay error "
                f"median {np.median(delays):.3f} ms, largest {np.max(delays):.3f} ms (all so far)",
                flush=True,
            )


def _effects(result: sy.ActuatorIdentification) -> set[str]:
    from steelyard.actuators import DRIVE_EFFECTS

    return set(DRIVE_EFFECTS) & set(result.model.parameters)


def main() -> None:
    words = sys.argv[1:] or ["real"]
    if words[0] == "plants":
        plants(int(words[1]) if len(words) > 1 else 17)
    else:
        real(words[words.index("-o") + 1] if "-o" in words else "")


if __name__ == "__main__":
    main()
