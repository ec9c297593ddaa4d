"""Coverage-guided inputs, where atheris is installed: python -m fuzz.guided READER [libFuzzer options].

The same readers and the same complaints as `fuzz.run`; libFuzzer chooses what to change by the edges that it sees, and
our mutators make half of the changes. `--all [--seconds-each S] [--state FOLDER]` takes every reader in turn, each in a
process of its own (libFuzzer ends at the first finding), and keeps what they said and what failed in the folder.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["steelyard"], enable_loader_override=False):
    from fuzz import run
    from fuzz.readers import Reader, make_readers


def fuzz_one(reader: Reader, folder: Path, options: list[str]) -> None:
    """Let libFuzzer loose on a reader, with a `folder` for its files; it ends the process itself."""
    watch, file = run.Watch(), folder / f"input{reader.suffix}"
    corpus = folder / f"corpus-{reader.name}"
    corpus.mkdir()
    for k, seed in enumerate(reader.seeds):
        (corpus / f"seed{k}").write_bytes(seed)

    def one_input(data: bytes) -> None:
        file.write_bytes(data)
        said = run.complaint(reader.read, file, watch)
        if said:
            print(said, flush=True)
            raise AssertionError("a finding")

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = reader.mutate(rng, bytes(data)) if rng.random() < 0.5 else atheris.Mutate(bytes(data), most)
        return bytes(changed[:most])

    # An alarm of libFuzzer's own would take ours away.
    atheris.Setup([sys.argv[0], "-timeout=0", *options, str(corpus)], one_input, custom_mutator=mutate)
    atheris.Fuzz()


def fuzz_all(folder: Path, seconds: float, state: Path) -> int:
    """Every reader for so many seconds: inputs, edges by libFuzzer's count, and how many readers had a finding."""
    state.mkdir(parents=True, exist_ok=True)
    total = found = 0
    print("| reader | inputs | edges | findings |\n|---|---|---|---|", flush=True)
    for reader in make_readers(folder):
        told = state / f"{reader.name}.txt"
        child = os.fork()  # what was loaded and instrumented is there already
        if child == 0:
            out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            options = ["-print_final_stats=1", f"-artifact_prefix={state / reader.name}-"]
            fuzz_one(reader, folder, [f"-max_total_time={seconds:.0f}", *options])
            os._exit(1)
        failed = os.waitpid(child, 0)[1] != 0
        said = told.read_text(errors="replace")
        inputs = sum(int(n) for n in re.findall(r"number_of_executed_units: (\d+)", said))
        edges = max((int(n) for n in re.findall(r"cov: (\d+)", said)), default=0)
        total, found = total + inputs, found + failed
        print(f"| {reader.name} | {inputs:,} | {edges:,} | {int(failed)} |", flush=True)
    print(f"| **all** | {total:,} | | {found} |")
    return found


def main() -> int:
    folder = Path(tempfile.mkdtemp())
    if "--all" not in sys.argv[1:]:
        fuzz_one(next(r for r in make_readers(folder) if r.name == sys.argv[1]), folder, sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(prog="fuzz.guided", description=__doc__)
    parser.add_argument("--all", action="store_true", required=True)
    parser.add_argument("--seconds-each", type=float, default=30.0)
    parser.add_argument("--state", type=Path, default=Path("build/guided"))
    given = parser.parse_args()
    return min(fuzz_all(folder, given.seconds_each, given.state), 1)


if __name__ == "__main__":
    sys.exit(main())
