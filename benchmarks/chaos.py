"""Kills at random moments over every command that writes, Ctrl-C, full and read-only disks, two at once, clock jumps.

    python benchmarks/chaos.py                          # 200 trials, printed
    python benchmarks/chaos.py --trials 2000 --store build/chaos.jsonl  # stopped, it goes on where it was

The commands and what is done to them are those of `tests/chaos`, where a few trials run with every `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "chaos"))

from disturbances import FAULTS, Bench, small_disk  # type: ignore[import-not-found]
from studio_kills import NAME as STUDIO  # type: ignore[import-not-found]
from studio_kills import studio_trial
from writing_commands import COMMANDS  # type: ignore[import-not-found]

# How often each is done: kills are what the campaign is about, and the dear commands come up less.
WEIGHTS = {"kill": 12, "burst": 4, "interrupt": 4, "full": 2, "read-only": 1, "two": 2, "clock": 1}
DEAR = ("demo", "reproduce")
# Every so many-th trial kills a studio.
STUDIO_EACH = 20
# What every `make test` does, in a few seconds.
SHORT = tuple((fault, "identify") for fault in ("kill", "interrupt", "two", "full", "read-only"))


def chosen(number: int) -> tuple[str, Any]:
    """Fault and command of a trial."""
    rng = random.Random(number)
    fault = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    writing = rng.choices(COMMANDS, [1 if c.name in DEAR else 4 for c in COMMANDS])[0]
    return "kill" if fault == "burst" and writing.file else fault, writing


def table(done: list[dict[str, Any]]) -> str:
    """Counts by command, as Markdown."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for trial in done:
        for name in (trial["command"], "**all**"):
            row = rows[name]
            row[trial["fault"]] += 1
            # A command that is killed at some moment, or the writing of what it has made, again and again.
            row["commands"] += trial["kills"] * (trial["fault"] == "kill")
            row["writings"] += trial["kills"] * (trial["fault"] == "burst")
            row["within"] += trial["within"]
            row["compared"] += trial["compared"]
            row["wrong"] += bool(trial["wrong"])
    others = [fault for fault in FAULTS if fault not in ("kill", "burst")]
    head = ["command", "killed", "its writing killed", "while writing", *others, "finished afterwards, equal", "faults"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in [*(name for name in (*(c.name for c in COMMANDS), STUDIO) if name in rows), "**all**"]:
        row = rows[name]
        cells = [
            name,
            row["commands"],
            row["writings"],
            row["within"],
            *(row[fault] for fault in others),
            row["compared"],
            row["wrong"],
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=200, help="trials in all, those in --store included")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial, which chooses the others")
    parser.add_argument("--store", type=Path, help="a file of lines that keeps what is done")
    parser.add_argument("--short", action="store_true", help="a few trials of one command")
    o = parser.parse_args()
    if not hasattr(os, "fork"):
        raise SystemExit("Processes are forked here, which this system cannot.")
    done = [json.loads(line) for line in o.store.read_text().splitlines()] if o.store and o.store.exists() else []
    known, begun = {trial["number"] for trial in done}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, small_disk(Path(folder) / "small") as small:
        named = {writing.name: writing for writing in COMMANDS}
        wanted = {name for _, name in SHORT} if o.short else set(named)
        bench = Bench(Path(folder), tuple(w for w in COMMANDS if w.name in wanted), small)
        for number in range(o.first, o.first + (len(SHORT) if o.short else o.trials)):
            if number in known:
                continue
            if time.monotonic() - begun > 60.0 * o.minutes:
                break
            fault, writing = chosen(number)
            if o.short:
                fault, writing = SHORT[number - o.first][0], named[SHORT[number - o.first][1]]
            if number % STUDIO_EACH == STUDIO_EACH - 1 and not o.short:
                trial = {"number": number, **studio_trial(Path(folder), number)}
            else:
                trial = {"number": number, **asdict(bench.trial(number, fault, writing))}
            done.append(trial)
            if trial["wrong"]:
                print(json.dumps(trial), flush=True)
            if o.store:
                o.store.parent.mkdir(parents=True, exist_ok=True)
                with o.store.open("a") as file:
                    file.write(json.dumps(trial) + "\n")
    print(table(done))
    raise SystemExit(any(trial["wrong"] for trial in done))


if __name__ == "__main__":
    main()
