"""Run the campaign: python -m fuzz.run [--seconds S] [--inputs N] [--seed N] [--reader NAME] [--state FOLDER].

`--again` tries only what was found before, and forgets what ends well now.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from steelyard.errors import LONGEST_MESSAGE, SteelyardError

SECONDS_EACH, BYTES_EACH = 5, 1 << 30
# A library that never comes back hears no signal: then the whole campaign ends, and the input is left where it lay.
SECONDS_AT_MOST = 120
TRACED = 50  # every so many-th input is traced for the edges it runs through: tracing takes several times as long
CORPUS = 300
# What reading a file has no business to do.
_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class", "socket.connect",
    "os.remove", "os.rename", "shutil.rmtree",
)  # fmt: skip


class Hang(BaseException):
    """The time for one input is over."""


class Executed(BaseException):
    """Reading did what it has no business to do."""


class Watch:
    """What happens while one input is read: time, memory, forbidden deeds."""

    on = False
    _begun = 0.0

    def __init__(self) -> None:
        sys.addaudithook(self._audit)
        signal.signal(signal.SIGALRM, self._over)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if Watch.on and event in _FORBIDDEN:
            raise Executed(f"{event} {arguments!r:.200}")

    def _over(self, number: int, frame: FrameType | None) -> None:
        left = SECONDS_EACH - (_own_time() - self._begun)
        if left < 0.01:
            raise Hang(f"after {SECONDS_EACH} s")
        signal.setitimer(signal.ITIMER_REAL, left)  # others had the processor

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        self._begun = _own_time()
        signal.setitimer(signal.ITIMER_REAL, SECONDS_EACH)
        faulthandler.dump_traceback_later(SECONDS_AT_MOST, exit=True)
        Watch.on = True
        try:
            yield
        finally:
            Watch.on = False
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_REAL, 0)


def _own_time() -> float:
    """The clock (s), without the time for which this process would have run and had to wait for a processor."""
    try:
        waited = float(Path("/proc/self/schedstat").read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):  # not on Linux
        waited = 0.0
    return time.monotonic() - waited


def complaint(read: Any, path: Path, watch: Watch) -> str | None:
    """What is wrong with how `read` took the file at `path`: "" where it was read, None where refused in a sentence."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with watch.watching(), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            read(path)
            said = ""
    except SteelyardError as error:
        text = str(error)
        if len(text) > LONGEST_MESSAGE or not text.replace("\n", " ").isprintable() or not text:
            return f"message: {text!r:.400}"
        said = None
    except (Exception, Hang, Executed):
        return traceback.format_exc(limit=-12)
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > BYTES_EACH // 1024:
        return "memory: more than 1 GB"
    return said


class Edges:
    """The pairs of lines of the package that were run one after the other, loading of modules left out."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, int]] = set()
        self.new = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if "steelyard" not in frame.f_code.co_filename or frame.f_code.co_name == "<module>":
            return None
        last = [0]
        name = frame.f_code.co_filename

        def line(inner: FrameType, what: str, value: Any) -> Any:
            edge = (name, last[0], inner.f_lineno)
            last[0] = inner.f_lineno
            if edge not in self.seen:
                self.seen.add(edge)
                self.new += 1
            return line

        return line

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        self.new = 0
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(None)


def signature(text: str) -> str:
    """By which two complaints count as one: the places, without the values."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("File ")]
    kind = text.strip().splitlines()[-1].split(":")[0]
    return hashlib.sha256("\n".join([*lines[-3:], kind]).encode()).hexdigest()[:10]


def campaign(reader: Any, state: Path, seed: int, seconds: float, inputs: int, watch: Watch) -> dict[str, Any]:
    """Some more inputs for one reader; goes on where the state in its folder ends."""
    place = state / reader.name
    (place / "findings").mkdir(parents=True, exist_ok=True)
    known = place / "state.json"
    done: dict[str, Any] = (
        json.loads(known.read_text()) if known.exists() else {"inputs": 0, "read": 0, "findings": {}, "edges": []}
    )
    edges, corpus = Edges(), list(reader.seeds)
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        file = Path(folder) / f"input{reader.suffix}"
        for kept in sorted((place / "corpus").glob("*")) if (place / "corpus").exists() else ():
            corpus.append(kept.read_bytes())
        (place / "corpus").mkdir(exist_ok=True)
        for data in reader.seeds:  # what is loaded, built and kept at the first time does not count
            file.write_bytes(data)
            with contextlib.suppress(BaseException):
                complaint(reader.read, file, watch)
        for data in corpus:
            file.write_bytes(data)
            with edges.traced(), contextlib.suppress(BaseException):
                complaint(reader.read, file, watch)
        begun, first = time.monotonic(), done["inputs"]
        while done["inputs"] - first < inputs and time.monotonic() - begun < seconds:
            number = done["inputs"] = done["inputs"] + 1
            rng = random.Random(f"{seed}/{reader.name}/{number}")
            data = reader.mutate(rng, rng.choice(corpus if rng.random() < 0.4 else reader.seeds))
            if len(data) > 2_000_000:
                continue
            file.write_bytes(data)
            if number % TRACED:
                said = complaint(reader.read, file, watch)
            else:
                with edges.traced():
                    said = complaint(reader.read, file, watch)
                if edges.new and len(corpus) < CORPUS and len(data) < 100_000:
                    corpus.append(data)
                    (place / "corpus" / f"{len(corpus):04d}").write_bytes(data)
            done["read"] += said == ""
            if said:
                key = signature(said)
                if key not in done["findings"]:
                    (place / "findings" / f"{key}{reader.suffix}").write_bytes(data)
                    (place / "findings" / f"{key}.txt").write_text(f"input {number}\n{said}")
                done["findings"][key] = done["findings"].get(key, 0) + 1
            if number % 1000 == 0:
                done["edges"].append([number, len(edges.seen)])
                _keep(known, done)
    done["edges"].append([done["inputs"], len(edges.seen)])
    done["corpus"] = len(corpus)
    _keep(known, done)
    return done


def again(reader: Any, state: Path, watch: Watch) -> dict[str, int]:
    """Try the inputs of a reader's findings once more; those that end well now are no findings any more."""
    known = state / reader.name / "state.json"
    if not known.exists():
        return {}
    done = json.loads(known.read_text())
    for key in list(done["findings"]):
        text, file = (state / reader.name / "findings" / f"{key}{suffix}" for suffix in (".txt", reader.suffix))
        said = complaint(reader.read, file, watch)
        if said:
            text.write_text(said)
        else:
            del done["findings"][key]
            text.unlink(missing_ok=True)
    _keep(known, done)
    return dict(done["findings"])


def _keep(path: Path, done: dict[str, Any]) -> None:
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(done))
    os.replace(aside, path)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="in all")
    parser.add_argument("--inputs", type=int, default=10**9, help="per reader, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", default=[], help="its name; may be repeated; default: all")
    parser.add_argument("--again", action="store_true", help="only try the findings once more")
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"), help="a folder to go on from")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

    from fuzz.readers import make_readers

    worst, watch = 0, Watch()
    folder = Path(tempfile.mkdtemp(dir=_memory()))
    try:
        readers = [r for r in make_readers(folder) if not given.reader or r.name in given.reader]
        for reader in readers if given.again else ():
            left = again(reader, given.state, watch)
            worst = max(worst, len(left))
            print(f"{reader.name:16} {len(left)} findings", flush=True)
        for reader in readers if not given.again else ():
            done = campaign(reader, given.state, given.seed, given.seconds / len(readers), given.inputs, watch)
            found = sum(done["findings"].values())
            print(f"{reader.name:16} {done['inputs']:9} inputs  {done['read']:8} read  {done['edges'][-1][1]:5} edges  "
                  f"{len(done['findings'])} findings ({found} inputs)", flush=True)  # fmt: skip
            worst = max(worst, len(done["findings"]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
