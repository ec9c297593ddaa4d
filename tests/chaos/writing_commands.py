"""Every command that writes, on inputs that take a second or less, each in a process of its own that may be killed.

A process is forked from this one, which has imported the program, so that a thousand of them take minutes; it is else
what `python -m steelyard` is. Nothing is computed in this process itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.ground.folders import MANIFEST, check_target, only_a_run
from steelyard.ground.interrupt import on_interrupt

REGIONS = """
regions:
  left: {joints: {q1: [-1.2, 0.0], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}
  right: {joints: {q1: [0.0, 1.2], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}
"""
PLAN = """
terms: [viscous, coulomb]
signals: as logged
movements: [{name: last, logs: last.csv, moves: [q3], finds: [Izz3, mx3, my3, Fv3, Fc3]}]
"""
FLEET = """robot,model,description,log
one,arm,rotradi,log.csv
other,arm,rotradi,loaded.csv
"""
# Among the logs a pipe without an end and a link to a device that has none: listed, and nothing waits for them.
ODD_FLEET = f"{FLEET}other,arm,rotradi,pipe.csv\nother,arm,rotradi,endless.csv\n"
PENDULUM = Path(__file__).parents[1] / "compare" / "pendulum.yaml"
QUICK = ("--duration", "4", "--rate", "50", "--harmonics", "3", "--no-collision")


@dataclass(frozen=True)
class Writing:
    """A command that writes.

    Attributes:
        name: of the command, and of what is special in this use of it.
        words: as typed; IN stands for the folder of inputs, OUT for the place that is written.
        ends: exit codes of a run that was not disturbed.
        resume: words to go on with what a killed run has left, None if there is no such thing.
        overwrite: it has --overwrite.
        file: OUT is a file, not a folder.
        below: what is written is this folder in OUT.
    """

    name: str
    words: tuple[str, ...]
    ends: tuple[int, ...] = (0,)
    resume: tuple[str, ...] | None = None
    overwrite: bool = True
    file: bool = False
    below: str = ""

    def typed(self, inputs: Path, out: Path, *more: str) -> list[str]:
        return [w.replace("IN/", f"{inputs}/").replace("OUT", str(out)) for w in (*self.words, *more)]


FIT = ("--terms", "viscous,coulomb")
REGIONAL, VALIDATED = ("rotradi", "IN/regions.yaml"), ("rotradi", "IN/bank")
HOW = ("--how", "via-points", "--duration", "6")
BANK = ("--simulate", *FIT, "--free", "--prior", "none", "--cutoff", "30")
LOG = ("rotradi", "IN/log.csv")
COMMANDS = (
    Writing("identify", ("identify", *LOG, "--holdout", "0.3", *FIT, "-o", "OUT")),
    Writing("check --fix", ("check", *LOG, "--fix", "OUT"), (0, 1), None, False, file=True),
    Writing("excite", ("excite", "szabo3r", *QUICK, "--optimiser", "cma", "--generations", "3", "-o", "OUT")),
    Writing(
        "excite --checkpoint",
        ("excite", "szabo3r", *QUICK, "--optimiser", "ga", "--generations", "12", "--checkpoint", "OUT.kept",
         "-o", "OUT"),
        resume=(),
    ),
    Writing(
        "local design --how evolved",
        ("local", "design", *REGIONAL, "--how", "evolved", "--duration", "3", "--population", "8", "--generations", "6",
         "--via-points", "2", "--checkpoint", "OUT.kept", "-o", "OUT"),
        resume=(),
    ),
    Writing("friction --design", ("friction", "rotradi", "--design", "-o", "OUT")),
    Writing("friction", ("friction", *LOG, "--how", "table", "--model", "IN/model", "-o", "OUT")),
    Writing("payload", ("payload", "rotradi", "--with", "IN/loaded.csv", "--arm", "IN/model", "-o", "OUT")),
    Writing("rehearse", ("rehearse", "szabo3r", "IN/motion", "--rate", "200", "-o", "OUT"), (0, 1)),
    Writing("simulate", ("simulate", "szabo3r", "--motion", "IN/motion", "--rate", "200", "-o", "OUT")),
    Writing("simulate --torque", ("simulate", "rotradi", "--torque", "IN/log.csv", "-o", "OUT")),
    Writing("validate", ("validate", "szabo3r", "--against", "szabo3r", "--motion", "IN/motion", "-o", "OUT")),
    Writing("validate --log", ("validate", "IN/model", "--log", "IN/log.csv", "-o", "OUT")),
    Writing("sequential", ("sequential", "rotradi", "IN/plan.yaml", "-o", "OUT")),
    Writing("compare schemes", ("compare", "schemes", *LOG, "--schemes", "dynamic,energy", *FIT, "-o", "OUT")),
    Writing("compare estimators LOG", ("compare", "estimators", *LOG, "--estimators", "wls,ols", *FIT, "-o", "OUT")),
    Writing(
        "compare estimators",
        ("compare", "estimators", str(PENDULUM), "--estimators", "wls,ols,huber", "--noise", "low,standard",
         "--starts", "2", "--trajectories", "1", "--duration", "2", "--rates", "500", "--control-rate", "500",
         "--harmonics", "4", "--workers", "1", "-o", "OUT"),
        resume=("--resume",),
    ),
    Writing("local design", ("local", "design", *REGIONAL, *HOW, "-o", "OUT")),
    Writing("local identify", ("local", "identify", *REGIONAL, *BANK, "--motions", "IN/motions", "-o", "OUT")),
    Writing("local validate", ("local", "validate", *VALIDATED, "--simulate", "--trajectories", "2", "-o", "OUT")),
    Writing("local recalibrate", ("local", "recalibrate", *VALIDATED, "left", "--log", "IN/left.csv", "-o", "OUT")),
    Writing("fleet", ("fleet", "IN/fleet.csv", "--workers", "0", "--plain", "-o", "OUT"), resume=()),
    Writing("fleet, odd logs", ("fleet", "IN/odd.csv", "--workers", "0", "--plain", "-o", "OUT"), resume=()),
    Writing("demo", ("demo", "-o", "OUT"), overwrite=False),
    Writing("reproduce", ("reproduce", "rotradi", "--fast", "-o", "OUT"), (0, 1), resume=(), below="rotradi"),
)  # fmt: skip


def prepare(folder: Path, commands: tuple[Writing, ...] = COMMANDS) -> None:
    """Fill `folder` with what the `commands` read: logs, a model, a motion, regions, a bank."""
    read = " ".join(word for writing in commands for word in writing.words)
    folder.mkdir(parents=True)
    (folder / "regions.yaml").write_text(REGIONS)
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "fleet.csv").write_text(FLEET)
    (folder / "odd.csv").write_text(ODD_FLEET)
    os.mkfifo(folder / "pipe.csv")
    (folder / "endless.csv").symlink_to("/dev/zero")

    def logs() -> int:
        from dataclasses import replace

        import numpy as np

        from steelyard.demo import simulated_log
        from steelyard.dynamics import Model
        from steelyard.robot.library import builtin

        truth = Model.nominal(builtin("rotradi"))
        log = simulated_log(truth, 1)
        few = replace(log, **{x: np.asarray(getattr(log, x))[::10] for x in ("t", "q", "dq", "tau")})
        few.save(folder / "log.csv")
        replace(few, tau=1.01 * np.asarray(few.tau)).save(folder / "loaded.csv")
        # In the region left, and the last joint alone, by a closed form.
        w = np.array([1.3, 1.7, 2.1])
        angle = w * np.asarray(few.t)[:, None]
        for name, size in (("left", 0.5), ("last", np.array([0.0, 0.0, 0.5]))):
            q = np.array([-0.6, 0.0, 0.0]) + size * np.sin(angle)
            dq, ddq = size * w * np.cos(angle), -size * w**2 * np.sin(angle)
            replace(few, q=q, dq=dq, ddq=ddq, tau=truth.torque(q, dq, ddq)).save(folder / f"{name}.csv")
        return 0

    told = folder.parent / "told"
    assert ended(begin(logs, told)) == 0, told.read_text()
    for writing, name in (
        (Writing("", ("identify", *LOG, "--holdout", "0.3", "--plain", "-o", "OUT")), "model"),
        (Writing("", ("excite", "szabo3r", *QUICK, "--search-time", "0", "-o", "OUT")), "motion"),
        (Writing("", ("local", "design", *REGIONAL, *HOW, "-o", "OUT")), "motions"),
        (Writing("", ("local", "identify", *REGIONAL, *BANK, "--motions", "IN/motions", "-o", "OUT")), "bank"),
    ):
        if f"IN/{name}" in read or (name == "motions" and "IN/bank" in read):
            assert ended(begin(program(writing.typed(folder, folder / name)), told)) == 0, told.read_text()


# ---------------------------------------------------------------- processes


def import_all() -> None:
    """What any command may need, before the first fork."""
    import llvmlite.binding  # noqa: F401

    import steelyard.cli

    for found in pkgutil.iter_modules(steelyard.cli.__path__):
        importlib.import_module(f"steelyard.cli.{found.name}")
    for room in ("check", "compare", "demo", "excitation", "export", "friction", "identification.identify_files",
                 "local", "papers.reproduce", "payload", "rehearsal.rehearse", "report.terminal", "signals.read",
                 "simulation", "estimation.registry", "fleet.fleet", "fleet.page", "simulation.simulated_motion",
                 "estimation.sequential.sequential_result", "assessment.model_validation"):  # fmt: skip
        importlib.import_module(f"steelyard.{room}")  # fmt: skip


def program(words: list[str], before: Callable[[], None] = lambda: None) -> Callable[[], int]:
    """The program with these words, as a child runs it; `before` is called there first."""

    def run() -> int:
        from steelyard.cli import main

        before()
        sys.argv = ["steelyard", *words]
        main()
        return 0

    return run


def begin(work: Callable[[], int], told: Path) -> int:
    """Fork; the child does its `work`, which may end it, and says what it says into a file. Gives its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    told.unlink(missing_ok=True)
    child = os.fork()
    if child:
        while not told.exists() and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(5e-4)
        return child
    code = 99
    on_interrupt()
    try:
        out = os.open(told, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(out, stream)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding="utf-8", closefd=False) for n in (1, 2))
        code = work()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def ended(child: int, within: float = 120.0) -> int:
    """The exit code of a child, negative for a signal; one that hangs is killed and gives -999."""
    limit = time.monotonic() + within
    while time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -999


# ---------------------------------------------------------------- what must hold afterwards


@dataclass
class World:
    """A folder with something of somebody's in it, and the place that a command writes to.

    Attributes:
        folder: all of it.
        writing: the command.
    """

    folder: Path
    writing: Writing
    mine: dict[Path, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        for name in ("thesis.txt", "out.txt", ".hidden", "log.steelyard-new"):
            path = self.folder / name
            path.write_bytes(os.urandom(64))
            self.mine[path] = path.read_bytes()

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def run(self) -> Path:
        return self.out / self.writing.below if self.writing.below else self.out

    @property
    def told(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.told"

    def lost(self) -> str:
        """What of somebody's is gone or changed."""
        return ", ".join(str(p) for p, held in self.mine.items() if not p.is_file() or p.read_bytes() != held)

    def torn(self) -> str:
        """What is neither whole nor absent, and not a run that grows and can go on."""
        if not os.path.lexists(self.run):
            return ""
        if self.writing.file:
            return "" if self.run.read_bytes().endswith(b"\n") else f"{self.run} is cut off"
        try:
            held = set(only_a_run(self.run))
        except Exception as error:
            return str(error)
        listed = json.loads((self.run / MANIFEST).read_text())
        gone = set(listed["files"]) - held
        if gone:
            return f"{self.run} lacks {sorted(gone)}"
        return "" if "result.json" in held or listed["growing"] else f"{self.run} has no result"

    def litter(self) -> str:
        """What is left aside."""
        places = [self.folder, self.folder / "out", self.run]
        return ", ".join(sorted({name for place in places if place.is_dir() for name in asides(place)}))

    def swept(self) -> str:
        """What is left aside after the next run has looked there."""
        check_target(self.folder / "another", overwrite=False)
        if self.writing.below and self.out.is_dir():
            check_target(self.out / "another", overwrite=False)
        return self.litter()

    def contents(self) -> dict[str, str]:
        """Files of the run with their hashes, times of work left out."""
        if self.run.is_file():
            return {self.run.name: hashlib.sha256(self.run.read_bytes()).hexdigest()}
        return {
            p.relative_to(self.run).as_posix(): hashlib.sha256(timeless(p)).hexdigest()
            for p in self.run.rglob("*")
            if p.is_file() and p.name != MANIFEST and not (self._timed and p.suffix == ".html")
        }

    @property
    def _timed(self) -> bool:
        return self.writing.name.startswith(("compare", "fleet"))


def timeless(path: Path) -> bytes:
    """The content of a file; of JSON without the seconds that work took, and of lines in any order of ending."""
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl"):
        return data
    lines = data.splitlines() if path.suffix == ".jsonl" else [data]
    return b"\n".join(sorted(json.dumps(_without_times(json.loads(line))).encode() for line in lines))


# Times, what `compare` orders and advises by them, and how much of a fleet was kept from the last time.
_BY_TIME = ("seconds", "time", "ranking", "by_noise", "advice", "run")


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k not in _BY_TIME}
    return [_without_times(v) for v in value] if isinstance(value, list) else value


def asides(folder: Path) -> list[str]:
    """What is being written in `folder`, or was."""
    return [name for name in os.listdir(folder) if ".steelyard-new-" in name or ".steelyard-old-" in name]


def moments(folder: Path, until: float) -> Iterator[bool]:
    """Every half millisecond, whether something is being written in `folder`; ends after so many seconds."""
    begun = time.monotonic()
    while time.monotonic() - begun < until:
        yield bool(asides(folder))
        time.sleep(5e-4)
