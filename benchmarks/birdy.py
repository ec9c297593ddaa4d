"""BIRDy's protocol in full: 25 starts of each of 4 motions at 5 levels of noise, 15 estimators, 7,500 runs; hours.

    python benchmarks/birdy.py                    # goes on where it was stopped, on this machine or another
    python benchmarks/birdy.py --minutes 30       # as far as it gets
    python benchmarks/birdy.py --so-far           # no run, the table alone

Every run is a line of build/birdy.jsonl as soon as it ends; when this ends, or is interrupted, all lines go to
results/birdy.jsonl.gz, which is kept with the sources. The table, in docs/how-to-choose.md, is of the starts that are
whole and says how many there are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import signal
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from common import machine

from steelyard.compare import Comparison, Protocol, monte_carlo
from steelyard.compare.methods import MethodRun
from steelyard.ground.numbers import number
from steelyard.ground.progress import ProgressReport
from steelyard.robot.library import builtin

ROOT = Path(__file__).parents[1]
RECORDS, KEPT = ROOT / "build" / "birdy.jsonl", ROOT / "benchmarks" / "results" / "birdy.jsonl.gz"
PAGE, BEGIN, END = ROOT / "docs" / "how-to-choose.md", "<!-- birdy -->\n", "<!-- /birdy -->"
ROBOT = "ns16"
ESTIMATORS = ("wls", "wls-physical", "huber", "ols", "ml", "ml-physical", "iv", "didim", "clie", "cloe", "ekf", "ukf",
              "tls", "ridge", "adaline")  # fmt: skip
PROTOCOL = Protocol(estimators=ESTIMATORS, starts=25, trajectories=4)


def unpacked() -> None:
    """What was kept lies where runs are added to."""
    if KEPT.exists() and not RECORDS.exists():
        RECORDS.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(KEPT) as packed, RECORDS.open("wb") as lines:
            shutil.copyfileobj(packed, lines)


def packed() -> None:
    """The other way round; the same lines give the same file."""
    KEPT.write_bytes(gzip.compress(RECORDS.read_bytes(), mtime=0))


def so_far() -> Comparison | None:
    """The starts of which every run has ended; None where there is none."""
    documents = [json.loads(line) for line in RECORDS.read_text("utf-8").splitlines()[1:]]
    done = {run.key: run for run in map(MethodRun.from_json, documents)}
    starts = 0
    while starts < PROTOCOL.starts and all(key in done for key in _keys(replace(PROTOCOL, starts=starts + 1))):
        starts += 1
    if not starts:
        return None
    part = replace(PROTOCOL, starts=starts)
    return Comparison(ROBOT, part, tuple(done[key] for key in _keys(part)))


def _keys(protocol: Protocol) -> list[tuple[Any, str]]:
    return [(cell.key, name) for cell in protocol.cells() for name in protocol.estimators]


def table(found: Comparison) -> str:
    """Medians by level of noise, as Markdown, and what they are of."""
    levels = [f"{n.name} {n.position_deg:g}/{n.torque:g}" for n in found.protocol.noises]
    head = [found.robot, *levels, "not converged", "M not p.d.", "s"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in ESTIMATORS:
        whole = found.summary(name)
        errors = [number(found.summary(name, noise=level).torque_error_percent, 2) for level in found.noises]
        shares = (f"{100.0 * share:.0f} %" for share in (whole.failed + whole.unsettled, whole.impossible))
        rows.append(f"| `{name}` | {' | '.join([*errors, *shares])} | {number(whole.seconds, 2)} |")
    p = found.protocol
    of = f"{p.starts} of {PROTOCOL.starts} starts × {p.trajectories} motions × {len(levels)} levels of noise"
    said = f"{of}, {len(found.runs):,} of {len(_keys(PROTOCOL)):,} runs; {p.duration:g} s at {p.rates[0]:g} Hz"
    spent = f"{number(sum(run.seconds for run in found.runs) / 3600.0, 2)} hours of processor time in the fits"
    said += f", low-pass of 50 Hz, PD; {spent}; {machine()}, {date.today().isoformat()}."
    return "\n".join([*rows, "", said, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="stop after so many")
    parser.add_argument("--so-far", action="store_true", help="no run, the table alone")
    given = parser.parse_args()
    unpacked()
    if given.minutes:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 60.0 * given.minutes)
    try:
        if not given.so_far:
            monte_carlo(builtin(ROBOT), PROTOCOL, records=RECORDS, progress=_say)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
    packed()
    found = so_far()
    if found is None:
        print("No start is whole yet.")
        return 1
    text = PAGE.read_text("utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}{table(found)}{END}{after}", "utf-8")
    print(table(found))
    return 0 if found.protocol.starts == PROTOCOL.starts else 1


def _say(told: ProgressReport) -> None:
    print(f"\r{told.message:<40}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
