"""All that takes longer than the tests may, stage by stage: proofs among the tests, papers in full, every benchmark.

    python benchmarks/proof.py                    # or make proof; goes on where it was stopped
    python benchmarks/proof.py --only 'papers|plants'
    python benchmarks/proof.py --missing          # only what has not passed yet, for whichever sources
    python benchmarks/proof.py --list             # what there is, and how it went the last time

A stage is a command. What it printed is in build/proof/STAGE.txt; how it ended in benchmarks/results/proof.jsonl, a
line each, which is kept with the sources, so that another machine goes on; and the last run of every stage as a table
in docs/proof.md. A stage that passed is not run again until the sources change.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from common import NOT_HERE, machine, show

ROOT = Path(__file__).parents[1]

_STATE, _PAGE = ROOT / "benchmarks" / "results" / "proof.jsonl", ROOT / "docs" / "proof.md"
_SAID = ROOT / "build" / "proof"
# Scripts whose whole size, or whose place to keep what is done, must be said.
_ARGUMENTS = {
    "faults": ("--store", str(ROOT / "build" / "proof-faults.jsonl")),
    "chaos": ("--trials", "200", "--store", str(ROOT / "build" / "proof-chaos.jsonl")),
}
# For comparing two states of the code, which a single run has not.
_NOT_ALONE = {"same_results", "proof"}
_MORE = {
    "scoreboard-unseen": ("benchmarks/scoreboard.py", "--unseen"),
    "scoreboard-leave-one-out": ("benchmarks/scoreboard.py", "--leave-one-out"),
}
_HEAD = """# Proof

Tests too long for `make test`: tests marked `proof`, the papers in full, every benchmark. `make proof` runs them stage
by stage, resumes after an interruption, and writes this table; a stage that passed is not run again until the sources
change. *Sources* are the first digits of git's hash of `src`; *minutes* are those of the last piece of a resumable
stage (`birdy`: hours in all). A stage that is not listed has not been run.

"""


@dataclass(frozen=True)
class Stage:
    """A command, and what it is called."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """How a stage ended: when, after how long, and for which sources (git's hash of `src`)."""

    stage: str
    sources: str
    date: str
    minutes: float
    code: int
    machine: str = ""

    @property
    def passed(self) -> bool:
        return self.code == 0

    @property
    def ended(self) -> str:
        return "passed" if self.passed else "not for this machine" if self.code == NOT_HERE else f"failed ({self.code})"


def stages() -> list[Stage]:
    """Everything there is, found in the folders: a new proof or benchmark is a stage without being listed."""
    found = []
    long_tests = (ROOT / "tests" / "long_tests.py").read_text("utf-8")
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        listed = f'"{path.relative_to(ROOT / "tests").as_posix()}":' in long_tests
        if listed or re.search(r"mark\.proof\b", path.read_text("utf-8")):
            place = path.relative_to(ROOT).as_posix()
            side_by_side = ("-n", "auto")  # nothing in a test is timed
            command = (sys.executable, "-m", "pytest", "-q", "-m", "proof", *side_by_side, place)
            found.append(Stage(f"tests/{path.stem}", command))
    papers = str(_SAID / "papers")
    for name in _papers():
        whole = (sys.executable, "-m", "steelyard", "reproduce", name, "-o", papers, "--overwrite")
        found.append(Stage(f"papers/{name}", whole))
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        if path.stem not in _NOT_ALONE and "__main__" in path.read_text("utf-8"):
            script = f"benchmarks/{path.name}"
            found.append(Stage(f"benchmarks/{path.stem}", (sys.executable, script, *_ARGUMENTS.get(path.stem, ()))))
    found += [Stage(f"benchmarks/{name}", (sys.executable, *command)) for name, command in _MORE.items()]
    fuzz = (sys.executable, "-m", "fuzz.run", "--seconds", "600", "--state", str(ROOT / "build" / "fuzz"))
    return [*found, Stage("fuzz", fuzz)]


def _papers() -> list[str]:
    from steelyard.papers import PAPERS

    return list(PAPERS)


def sources() -> str:
    """Git's hash of `src` as it is committed; with a mark where something there is not."""
    tree = subprocess.run(["git", "rev-parse", "HEAD:src"], cwd=ROOT, capture_output=True, text=True, check=False)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "src"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (tree.stdout.strip()[:12] or "unknown") + ("+" if changed.stdout.strip() else "")


def done(state: Path) -> dict[str, Run]:
    """The last run of every stage; a line that was cut off by a kill counts for nothing."""
    out: dict[str, Run] = {}
    for line in state.read_text("utf-8").splitlines() if state.exists() else ():
        try:
            run = Run(**json.loads(line))
        except (ValueError, TypeError):
            continue
        out[run.stage] = run
    return out


def run_all(
    wanted: list[Stage], state: Path, said: Path, code: str, again: bool = False, missing: bool = False
) -> bool:
    """Run the stages that have not passed for the sources `code`, or (`missing`) for any; whether all of them have."""
    said.mkdir(parents=True, exist_ok=True)
    known = done(state)
    for k, stage in enumerate(wanted, start=1):
        before = known.get(stage.name)
        if before is not None and before.passed and (missing or before.sources == code) and not again:
            print(f"[{k}/{len(wanted)}] {stage.name}: passed on {before.date}", flush=True)
            continue
        print(f"[{k}/{len(wanted)}] {stage.name} …", flush=True)
        begun = time.monotonic()
        with (said / f"{stage.name.replace('/', '-')}.txt").open("w", encoding="utf-8") as out:
            ended = subprocess.run(stage.command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False)
        minutes = (time.monotonic() - begun) / 60.0
        known[stage.name] = Run(
            stage.name, code, date.today().isoformat(), round(minutes, 2), ended.returncode, machine()
        )
        with state.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(known[stage.name])) + "\n")
        print(f"[{k}/{len(wanted)}] {stage.name}: {known[stage.name].ended}, {minutes:.1f} min", flush=True)
    return all(stage.name in known and known[stage.name].code in (0, NOT_HERE) for stage in wanted)


def page(runs: dict[str, Run], order: list[Stage], code: str) -> str:
    """The table of the last run of every stage, in the order of the stages; `code` are the sources of today."""
    rows = ["| stage | date | minutes | ended | sources |", "|---|---|---|---|---|"]
    for stage in order:
        if (run := runs.get(stage.name)) is not None:
            ended = run.ended.replace("failed", "**failed**")
            rows.append(f"| {run.stage} | {run.date} | {run.minutes:.1f} | {ended} | {run.sources} |")
    missing = [stage.name for stage in order if stage.name not in runs]
    passed = sum(run.passed for run in runs.values())
    minutes = sum(run.minutes for run in runs.values())
    where = " and ".join(sorted({run.machine for run in runs.values() if run.machine}))
    today = sum(run.sources == code for run in runs.values())
    about = f"{passed} of {len(order)} stages passed, {minutes:.0f} minutes in all{f', on {where}' if where else ''}; "
    about += (
        f"{today} of them with the sources {code} that this page was written with, the others with earlier ones.\n\n"
    )
    left = f"\nNot run: {', '.join(missing)}.\n" if missing else ""
    return _HEAD + about + "\n".join(rows) + "\n" + left


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="stages whose name matches this expression")
    options.add_argument("--again", action="store_true", help="also what has passed")
    options.add_argument("--missing", action="store_true", help="only what has not passed for any sources")
    options.add_argument("--list", action="store_true", help="what there is, and how it went")
    given = options.parse_args()
    every = stages()
    wanted = [stage for stage in every if re.search(given.only, stage.name)]
    if given.list:
        runs = done(_STATE)
        rows = [[s.name, *((r.date, f"{r.minutes:.1f}", str(r.code)) if (r := runs.get(s.name)) else ("", "", ""))]
                for s in wanted]  # fmt: skip
        show("Stages", ["stage", "date", "minutes", "exit"], rows)
        return 0
    good = run_all(wanted, _STATE, _SAID, sources(), given.again, given.missing)
    _PAGE.write_text(page(done(_STATE), every, sources()), "utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
