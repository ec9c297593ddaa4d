"""What is done to a command that writes, and what must hold then: nothing lost, nothing torn, nothing left over."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from writing_commands import (  # type: ignore[import-not-found]
    COMMANDS,
    World,
    Writing,
    asides,
    begin,
    ended,
    import_all,
    moments,
    prepare,
    program,
)

from steelyard.ground.outcome import Outcome


@dataclass
class Told:
    """What came of one trial.

    Attributes:
        command: its name.
        fault: disturbance.
        kills: how often it was killed.
        within: how many of these kills hit while something was being written.
        compared: whether the run was finished and compared with an undisturbed one.
        wrong: faults; "" without any.
    """

    command: str
    fault: str
    kills: int = 0
    within: int = 0
    compared: bool = False
    wrong: str = ""


@dataclass
class Reference:
    """An undisturbed run: its files, its time [s] and its processor time [s]."""

    world: World
    seconds: float
    processor: float
    contents: dict[str, str]


@dataclass
class Bench:
    """A `root` folder with inputs and a reference run of each command; `small` is a file system that can be made full
    and read-only, None where there is none."""

    root: Path
    commands: tuple[Writing, ...] = COMMANDS
    small: Path | None = None
    references: dict[str, Reference] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import_all()
        prepare(self.root / "in", self.commands)

    def reference(self, writing: Writing) -> Reference:
        if writing.name not in self.references:
            for attempt in range(2):  # the first one compiles
                world = World(self.root / "reference" / f"{writing.name.replace(' ', '-')}-{attempt}", writing)
                begun, used = time.monotonic(), used_by_children()
                code = ended(begin(self.work(world), world.told))
                assert code in writing.ends, world.told.read_text()
                found = Reference(world, time.monotonic() - begun, used_by_children() - used, world.contents())
            for wrong in (world.torn(), world.litter(), world.lost()):
                assert not wrong
            self.references[writing.name] = found
        return self.references[writing.name]

    def work(self, world: World, *more: str, before: Callable[[], None] = lambda: None) -> Callable[[], int]:
        return program(world.writing.typed(self.root / "in", world.out, *more), before)

    def trial(self, number: int, fault: str, writing: Writing) -> Told:
        """Disturb a command once. The same `number` makes the same choices, but at varying moments."""
        rng = random.Random(f"{number} {fault} {writing.name}")
        reference = self.reference(writing)
        world = World(self.root / f"trial-{number}", writing)
        folder = world.folder
        told = Told(writing.name, fault)
        try:
            FAULTS[fault](self, world, reference, rng, told)
            for what in ("lost", "torn"):
                if found := getattr(world, what)():
                    told.wrong += f" {what}: {found}"
        except Exception as error:
            told.wrong += f" {type(error).__name__}: {error}"
        said = world.told.read_text() if world.told.exists() else ""
        if "Traceback" in said:
            told.wrong += " " + said[-400:]
        for each in {folder, world.folder}:  # a trial may go to a disk of its own
            shutil.rmtree(each, ignore_errors=True)
        world.told.unlink(missing_ok=True)
        told.wrong = told.wrong.strip()
        return told

    # ------------------------------------------------------------ pieces

    def old_run(self, world: World, reference: Reference) -> tuple[str, ...]:
        """Put a run there that is to be overwritten; the option that does it."""
        shutil.copytree(reference.world.out, world.out)
        return ("--overwrite",) if world.writing.overwrite else ()

    def killed(self, world: World, rng: random.Random, told: Told, seconds: float, more: tuple[str, ...]) -> None:
        """One start, and a kill at any moment, or soon after something is being written."""
        child = begin(self.work(world, *more), world.told)
        watched = world.run.parent if world.run.parent.is_dir() else world.folder
        if rng.random() < 0.5:
            time.sleep(rng.random() * 1.05 * seconds)
        else:
            for writes in moments(watched, 2.0 * seconds + 0.5):
                if writes or os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    break
            time.sleep(rng.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        if ended(child) == -signal.SIGKILL:
            told.kills += 1
            told.within += bool(asides(watched))

    def finished(self, world: World, reference: Reference, told: Told) -> None:
        """Go on with what is there, to the end; it must be what an undisturbed run writes."""
        writing = world.writing
        if not (writing.file and world.run.exists()):
            more: tuple[str, ...] = ()
            if writing.name == "compare estimators" and world.run.exists():
                more = ("--resume",) if (world.run / "runs.jsonl").exists() else ("--overwrite",)
            elif (world.run / "result.json").exists() and writing.overwrite:
                more = ("--overwrite",)
            code = ended(begin(self.work(world, *more), world.told))
            if code not in writing.ends:
                told.wrong += f" the next run: {code}, {world.told.read_text()[-300:]}"
        if world.contents() != reference.contents:
            told.wrong += " the next run differs from an undisturbed one"
        if left := world.litter():
            told.wrong += f" left over: {left}"
        told.compared = True


def kill(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """SIGKILL of a new run or of one that overwrites; then the run is resumed or repeated."""
    over = rng.random() < 0.4 and not world.writing.file
    more = bench.old_run(world, reference) if over else ()
    resumed = world.writing.resume is not None
    for attempt in range(rng.randint(1, 3) if resumed else 1):
        if attempt:
            more = world.writing.resume or ()
            if world.writing.name == "compare estimators" and not (world.run / "runs.jsonl").exists():
                break
            if (world.run / "result.json").exists():
                break
        bench.killed(world, rng, told, reference.seconds, more)
        if found := world.torn() or world.lost():
            told.wrong += f" after a kill: {found}"
        if over and not world.run.exists():
            told.wrong += " neither the old run nor the new one is there"
    if left := world.swept():
        told.wrong += f" left over: {left}"
    if resumed or rng.random() < 0.25:
        bench.finished(world, reference, told)


_BURST = 25
_save = Outcome.save


def burst(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """The result is found once, and its writing killed many times over: a new run, or one that overwrites."""
    found = bench.root / "burst.json"
    found.unlink(missing_ok=True)

    def many(result: Outcome, folder: Path, **how: Any) -> None:
        def writes(overwrite: bool) -> int:
            def write() -> int:
                _save(result, folder, **{**how, "overwrite": overwrite})
                return 0

            return begin(write, world.told)

        begun = time.monotonic()
        wrong = "" if ended(writes(True)) == 0 else world.told.read_text()
        span = time.monotonic() - begun
        for _ in range(_BURST):
            over = bool(how.get("keep")) or rng.random() < 0.6
            if not over:
                shutil.rmtree(world.run, ignore_errors=True)
            there, child = world.run.exists(), writes(over)
            time.sleep(rng.random() * 1.05 * span)
            os.kill(child, signal.SIGKILL)
            told.kills += ended(child) == -signal.SIGKILL
            told.within += bool(asides(world.run.parent))
            wrong += world.torn() or world.lost() or world.swept()
            if there and not world.run.exists():
                wrong += " neither the old run nor the new one is there"
            if world.run.exists() and world.contents() != reference.contents:
                wrong += " what is there differs from an undisturbed run"
        found.write_text(json.dumps({"kills": told.kills, "within": told.within, "wrong": wrong}))
        os._exit(0)

    def before() -> None:
        Outcome.save = many  # type: ignore[method-assign, assignment]

    code = ended(begin(bench.work(world, before=before), world.told), 600.0)
    if code or not found.exists():
        told.wrong += f" {code}: {world.told.read_text()[-300:]}"
        return
    said = json.loads(found.read_text())
    told.kills, told.within, told.wrong = said["kills"], said["within"], told.wrong + said["wrong"]
    told.compared = True


def interrupt(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """SIGINT: one line, 130, nothing left over; `excite` delivers."""
    more = bench.old_run(world, reference) if rng.random() < 0.3 and not world.writing.file else ()
    child = begin(bench.work(world, *more), world.told)
    time.sleep(rng.random() * reference.seconds)
    os.kill(child, signal.SIGINT)
    code = ended(child)
    lines = [line for line in world.told.read_text().splitlines() if line.startswith("steelyard:")]
    stopped = code == 130 and len(lines) == 1 and "stop" in lines[0]
    if not stopped and not (code in world.writing.ends and not lines):
        told.wrong += f" {code}: {lines}"
    if code == 130 and "best motion" in "".join(lines) and not (world.run / "result.json").exists():
        told.wrong += " no motion was delivered"
    if left := world.litter():
        told.wrong += f" left over: {left}"


def full(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """A full disk, or a limit on file sizes: one sentence that names a file; the run is resumed when there is room."""
    size = sum(p.stat().st_size for p in reference.world.folder.rglob("*") if p.is_file())
    if bench.small is not None:
        world.folder = bench.small / world.folder.name
        room = rng.randint(8, max(9, size // 1024)) * 1024
        remount(bench.small, f"size={room + 24 * 1024}")
        world.mine.clear()
        world.__post_init__()
        told_to = bench.root / "full.told"
        code = ended(begin(bench.work(world), told_to))
    else:
        told_to, limit = world.told, rng.randint(20_000, max(20_001, size))
        before = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # noqa: E731
        code = ended(begin(bench.work(world, before=before), told_to))
    said = told_to.read_text()
    if code not in world.writing.ends and not (
        code == 2 and f"steelyard: {world.folder}" in said and "make room" in said
    ):
        told.wrong += f" {code}: {said[-300:]}"
    if left := world.litter():
        told.wrong += f" left over: {left}"
    if found := world.lost() or world.torn():
        told.wrong += f" lost or torn: {found}"
    if code == 2:
        if bench.small is not None:
            remount(bench.small, "size=64m")
        bench.finished(world, reference, told)


def read_only(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """A read-only folder: refused before the work."""
    if bench.small is not None:
        remount(bench.small, "size=64m")
        world.folder = bench.small / world.folder.name
        world.mine.clear()
        world.__post_init__()
        remount(bench.small, "ro")
    else:
        world.folder.chmod(0o555)
    told_to = bench.root / "read-only.told"
    used = used_by_children()
    try:
        code = ended(begin(bench.work(world), told_to))
    finally:
        if bench.small is not None:
            remount(bench.small, "rw")
        else:
            world.folder.chmod(0o755)
    took, said = used_by_children() - used, told_to.read_text()
    if code != 2 or "cannot be written" not in said:
        told.wrong += f" {code}: {said[-300:]}"
    if took > 0.5 * reference.processor:
        told.wrong += f" told after {took:.1f} s of {reference.processor:.1f} s of processor time"


def two(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """Two at once to the same place: one wins, and the other reports it; with --overwrite, one after the other."""
    more = bench.old_run(world, reference) if rng.random() < 0.3 and not world.writing.file else ()
    other = world.told.with_suffix(".other")
    first = begin(bench.work(world, *more), world.told)
    time.sleep(rng.random() ** 2 * 0.3 * reference.seconds)
    second = begin(bench.work(world, *more), other)
    codes = ended(first), ended(second)
    won = [code for code in codes if code in world.writing.ends]
    said = world.told.read_text() + other.read_text()
    other.unlink()
    over = bool(more) or world.writing.name == "demo"
    if not won or len(won) + codes.count(2) != 2 or (len(won) == 2 and not over) or "Traceback" in said:
        told.wrong += f" {codes}: {said[-500:]}"
    if world.contents() != reference.contents:
        told.wrong += " what was written differs from an undisturbed run"
    if left := world.swept():
        told.wrong += f" left over: {left}"
    told.compared = True


def clock(bench: Bench, world: World, reference: Reference, rng: random.Random, told: Told) -> None:
    """The wall clock jumps by up to ten years, back and forth, while the command is at work."""
    seed = rng.random()

    def jumping() -> None:
        true, jump = time.time, random.Random(seed)
        time.time = lambda: true() + jump.uniform(-3e8, 3e8)
        time.time_ns = lambda: int(1e9 * time.time())

    code = ended(begin(bench.work(world, before=jumping), world.told))
    if code not in world.writing.ends:
        told.wrong += f" {code}: {world.told.read_text()[-300:]}"
    elif world.contents() != reference.contents:
        told.wrong += " what was written differs from an undisturbed run"
    told.compared = True


FAULTS: dict[str, Callable[[Bench, World, Reference, random.Random, Told], None]] = {
    "kill": kill, "burst": burst, "interrupt": interrupt, "full": full, "read-only": read_only, "two": two,
    "clock": clock,
}  # fmt: skip


def used_by_children() -> float:
    """Processor time (s) of all processes that have ended here."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def remount(place: Path, option: str) -> None:
    """Another size for a file system, or another right."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    """A file system of its own at `place`; None where this user may not make one."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, check=False
    )
    try:
        yield place if made.returncode == 0 else None
    finally:
        if made.returncode == 0:
            subprocess.run(["umount", "-l", str(place)], check=False)
