"""Hundreds of faults planted into sound logs: what each does to the model, and what the verdict says of it.

    STEELYARD_DATA=... python benchmarks/faults.py          # all of it, and docs/faults.md
    python benchmarks/faults.py --base simulated --no-page  # one base, printed only

The faults are those of `tests/faults`, where a few of them run with every `make test`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "faults"))

from fault_logs import Bench, Told, identify, planted  # type: ignore[import-not-found]
from sound_logs import Base, healthy, real_base, simulated_base  # type: ignore[import-not-found]

PLACES = ("fit", "both", "validation", "robot")
WORDS = {"good": "**trusted**", "usable": "reservations", "poor": "do not use", "refused": "refused"}
HEAD = """# Planted faults

Would the verdict notice? Faults are planted into sound logs, and `identify` is run on them with its defaults: in the
log that is fitted to, in the one that judges, and in both, where no score can show them. A fault is *harmful* if a base
parameter moves by more than three of its stated standard errors **and** the torque of a sound log of a third motion is
predicted by more than a tenth worse. Harmful faults must not end in "The model can be trusted". The page is written by
`benchmarks/faults.py`; `tests/faults` holds the faults, and runs some of each family with every `make test`.

Before the verdict looked at more than scores, 55 of 188 harmful faults on the UR10e and 69 of 198 on the simulated arm
ended in "can be trusted", and all of twelve copies of the fitted log were taken for judges.
"""


def table(base: Base, rows: list[Told]) -> str:
    harmful = [r for r in rows if r.harmful]
    missed = [r for r in rows if r.missed]
    copies = [r for r in rows if r.known]
    lines = [
        f"## {base.name}",
        "",
        f"{len(rows)} planted faults, {len(harmful)} harmful; **{len([r for r in missed if not r.known])} harmful ones "
        f"trusted**, {len([r for r in missed if r.known])} of {len(copies)} copies trusted.",
        "",
    ]
    if missed:
        lines += ["Trusted though harmful: " + "; ".join(f"{r.name} ({r.where})" for r in missed) + ".", ""]
    lines += ["| fault | in | moved, σ | torque error × | verdict | first reason |", "|---|---|---|---|---|---|"]
    for r in rows:
        worse = "–" if r.grade == "refused" else f"{r.worse:.2f}"
        moved = "–" if r.grade == "refused" else f"{r.moved:.1f}" + (" (harmful)" if r.harmful else "")
        said = WORDS[r.grade] + (" (missed)" if r.missed else "")
        lines.append(f"| {r.name} | {r.where} | {moved} | {worse} | {said} | {_short(r.reason)} |")
    return "\n".join(lines)


def _short(reason: str) -> str:
    parts = [p for p in reason.split("; ") if not p.startswith(("On data that", "All links are"))]
    text = (parts[0] if parts else "").replace("|", "/")
    return text if len(text) < 140 else text[:137] + "…"


def sound(count: int) -> str:
    grades = {}
    for name, case in healthy(count):
        verdict = identify(case.robot, case.fit, case.judge).verdict
        grades[name] = (verdict.grade, next((r for r in verdict.reasons[1:]), ""))
    alarms = {name: g for name, g in grades.items() if g[0] != "good"}
    text = [f"## Sound logs\n\n{count} simulated pairs of logs of six robots, whose descriptions are 15 % off, at 100 "
            f"to 250 Hz with 0.5 to 5 % noise, with and without velocity: {len(alarms)} not trusted."]  # fmt: skip
    text += [f"- {name}: {WORDS[g]} ({_short(why)})" for name, (g, why) in alarms.items()]
    return "\n".join(text)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--base", choices=("real", "simulated", "both"), default="both")
    options.add_argument("--healthy", type=int, default=50)
    options.add_argument("--no-page", action="store_true")
    given = options.parse_args()
    bases = [b for b in (real_base() if given.base != "simulated" else None,
                         simulated_base() if given.base != "real" else None) if b is not None]  # fmt: skip
    parts = [HEAD]
    for base in bases:
        start = time.time()
        bench = Bench(base)
        rows = [bench.tell(fault) for fault in planted(base)]
        parts.append(table(base, rows))
        print("\n".join(parts[-1].splitlines()[:6]), f"({time.time() - start:.0f} s)", flush=True)
    if given.healthy:
        parts.append(sound(given.healthy))
        print(parts[-1])
    if not given.no_page:
        (ROOT / "docs" / "faults.md").write_text("\n\n".join(p.strip() for p in parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
