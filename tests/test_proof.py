"""The long run: nothing is missing from it, and a stop costs no more than the stage it was in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
proof = pytest.importorskip("proof", reason="benchmarks/ is not beside the tests")


def test_every_proof_paper_and_benchmark_is_a_stage() -> None:
    commands = [" ".join(stage.command) for stage in proof.stages()]
    for path in (ROOT / "tests").rglob("test_*.py"):
        marked = "mark." + "proof" in path.read_text("utf-8")
        assert marked == any(path.relative_to(ROOT).as_posix() in c for c in commands)
    scripts = [p for p in (ROOT / "benchmarks").glob("*.py") if "__main__" in p.read_text("utf-8")]
    left = {p.stem for p in scripts if not any(f"benchmarks/{p.name}" in c for c in commands)}
    assert left == {"same_results", "proof"}  # one compares two states of the code, the other is this
    assert len({stage.name for stage in proof.stages()}) == len(commands)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    def stage(name: str, code: int) -> object:
        script = f"open(r'{tmp_path / 'count'}', 'a').write('{name}'); raise SystemExit({code})"
        return proof.Stage(name, (sys.executable, "-c", script))

    state, said = tmp_path / "state.jsonl", tmp_path / "said"
    three = [stage("a", 0), stage("b", 3), stage("c", 0)]
    assert not proof.run_all(three, state, said, "one")
    assert (tmp_path / "count").read_text() == "abc"
    with state.open("a") as lines:
        lines.write('{"stage": "c", "sour')  # killed while writing
    assert not proof.run_all(three, state, said, "one")
    assert (tmp_path / "count").read_text() == "abcb"  # what has passed is not run again, what failed is
    assert proof.run_all([three[0]], state, said, "two")
    assert (tmp_path / "count").read_text() == "abcba"  # other sources
    assert not proof.run_all(three, state, said, "three", missing=True)
    assert (tmp_path / "count").read_text() == "abcbab"  # whatever the sources were
    told = proof.page(proof.done(state), three)
    assert "| b |" in told
    assert "**failed** (3)" in told
    assert "2 of 3 stages passed" in told
    elsewhere = [stage("d", proof.NOT_HERE)]  # nothing is wrong, and nothing shown
    assert proof.run_all(elsewhere, state, said, "one")
    assert "| not for this machine |" in proof.page(proof.done(state), elsewhere)


def test_the_comparison_of_hours_goes_on_with_its_runs(tmp_path: Path) -> None:
    """The program refuses a folder with runs unless it is told what to do with them."""
    from steelyard.compare.monte_carlo import RUNS

    folder = tmp_path / "birdy"
    assert not {"--resume", "--overwrite"} & set(proof.birdy(folder))
    folder.mkdir()
    (folder / RUNS).write_text("{}\n")
    assert proof.birdy(folder)[-1] == "--resume"
    (folder / "result.json").write_text("{}\n")
    assert proof.birdy(folder)[-1] == "--overwrite"
    assert str(proof._SAID / "birdy") in next(s for s in proof.stages() if s.name == "benchmarks/birdy").command
