"""Coverage-guided inputs for one reader, where atheris is installed: python -m fuzz.guided READER [libFuzzer options].

The same readers and the same complaints as `fuzz.run`; libFuzzer chooses what to change by the edges that it sees, and
our mutators make half of the changes.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["steelyard"], enable_loader_override=False):
    from fuzz import run
    from fuzz.readers import make_readers


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    reader = next(r for r in make_readers(folder) if r.name == sys.argv[1])
    watch, file = run.Watch(), folder / f"input{reader.suffix}"
    corpus = folder / "corpus"
    corpus.mkdir()
    for k, seed in enumerate(reader.seeds):
        (corpus / f"seed{k}").write_bytes(seed)

    def one_input(data: bytes) -> None:
        file.write_bytes(data)
        said = run.complaint(reader.read, file, watch)
        if said:
            print(said)
            raise AssertionError("a finding")

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = reader.mutate(rng, bytes(data)) if rng.random() < 0.5 else atheris.Mutate(bytes(data), most)
        return bytes(changed[:most])

    atheris.Setup([sys.argv[0], *sys.argv[2:], str(corpus)], one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
