"""Drives from command logs: python benchmarks/actuators.py [real | plants N | effects N] [-o FOLDER]

`real` needs STEELYARD_DATA: two public servos, every gain or motion left out in turn; printed are the mean absolute
position error of closed-loop rollouts, the processor time, and the runs that are named as not predictable. With -o, a
figure per split. `plants N` simulates N drives of each friction model and of two kinds (`drive_bench.py`), and
prints how often the structure is right or named as not separable, how many truths are inside their 95 %, and the errors
of the delay. `effects N` does so for N drives with play and N with a delayed feedback.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import steelyard as sy
from steelyard.actuators import DRIVE_EFFECTS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "actuators"))
from drive_plants import random_plant

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


FRICTIONS = ("M1", "M2", "M3", "M4", "M5", "M6")


class Tally:
    """Counts over plants."""

    def __init__(self) -> None:
        self.count = self.right = self.said = 0
        self.delays: list[float] = []
        self.inside: dict[str, list[bool]] = {}

    def add(self, plant: Any, result: sy.ActuatorIdentification, effects: set[str], seed: int) -> None:
        model = result.model
        own = {e for e in DRIVE_EFFECTS if e in model.parameters} - {"delay"}
        same = model.friction == plant.friction and own == effects
        separate = [i for i in result.inseparable if "cannot be separated" in i.reason]
        self.count, self.right = self.count + 1, self.right + same
        self.said += not same and bool(separate)
        late = 1e3 * abs(model["delay"] - plant.truth["delay"])
        self.delays.append(late)
        outside = []
        for name in model.estimated if same else ():
            low, high = model.interval(name)
            held = low <= plant.truth[name] <= high
            self.inside.setdefault(name, []).append(held)
            if not held:
                off = (model[name] - plant.truth[name]) / max(model.standard_error(name), 1e-300)
                outside.append(f"{name} {off:+.1f}")
        chosen = " + ".join([model.friction, *sorted(own)])
        print(
            f"  {seed} {plant.kind} {plant.friction}: {'right' if same else f'{chosen} instead'}"
            f"{'' if same or not separate else ' (said)'}, delay off by {late:.3f} ms, {result.cpu_seconds:.1f} s"
            f"{f', outside: {outside}' if outside else ''}", flush=True,
        )  # fmt: skip

    def join(self, other: Tally) -> None:
        self.count, self.right, self.said = self.count + other.count, self.right + other.right, self.said + other.said
        self.delays += other.delays
        for name, values in other.inside.items():
            self.inside.setdefault(name, []).extend(values)

    def print(self, title: str) -> None:
        held = [x for values in self.inside.values() for x in values]
        share = 100.0 * float(np.mean(held)) if held else np.nan
        print(
            f"{title}: structure right {self.right}, named as not separable {self.said}, wrong "
            f"{self.count - self.right - self.said} of {self.count}; inside 95 %: {sum(held)} of {len(held)} "
            f"({share:.1f} %); delay error median {np.median(self.delays):.3f} ms, 95 % "
            f"{np.quantile(self.delays, 0.95):.3f}, largest {np.max(self.delays):.3f} ms", flush=True,
        )  # fmt: skip


def judged(groups: list[tuple[str, list[Any], list[int], set[str]]]) -> None:
    """Identify all plants of the groups (title, plants, seeds, effects) and print the counts."""
    from drive_bench import record_all

    whole = Tally()
    logs = record_all([p for g in groups for p in g[1]], [s for g in groups for s in g[2]])
    for title, plants, seeds, effects in groups:
        tally = Tally()
        for plant, seed in zip(plants, seeds, strict=True):
            result = sy.identify_actuator(logs.pop(0), plant.kind)
            tally.add(plant, result, effects, seed)
        tally.print(title)
        whole.join(tally)
    whole.print("all")
    for name, values in whole.inside.items():
        print(f"  {name}: {sum(values)} of {len(values)} inside")


def plants(count: int) -> None:
    seeds = list(range(100, 100 + count))
    judged(
        [
            (f"{kind} {friction}", [random_plant(kind, friction, s) for s in seeds], seeds, set())
            for kind in ("voltage", "torque")
            for friction in FRICTIONS
        ]
    )


def effects(count: int) -> None:
    """Play of 1 to 3 degrees, and a feedback that is 3 to 7 ms late, with which all gains are stable."""
    groups: list[tuple[str, list[Any], list[int], set[str]]] = []
    for kind in ("voltage", "torque"):
        for friction in ("M1", "M3"):
            for name, low, high in (("backlash", 0.02, 0.05), ("feedback_delay", 0.003, 0.007)):
                seeds = list(range(500, 500 + count))
                made = [random_plant(kind, friction, s) for s in seeds]
                sizes = np.random.default_rng(7).uniform(low, high, count)
                made = [replace(p, truth={**p.truth, name: x}) for p, x in zip(made, sizes, strict=True)]
                groups.append((f"{kind} {friction} {name}", made, seeds, {name}))
    judged(groups)


def main() -> None:
    words = sys.argv[1:] or ["real"]
    if words[0] in ("plants", "effects"):
        count = int(words[1]) if len(words) > 1 else 17
        plants(count) if words[0] == "plants" else effects(count)
    else:
        real(words[words.index("-o") + 1] if "-o" in words else "")


if __name__ == "__main__":
    main()
