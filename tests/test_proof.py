"""The long run: nothing is missing from it, and a stop costs no more than the stage it was in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from long_tests import LONG_TESTS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
proof = pytest.importorskip("proof", reason="benchmarks/ is not beside the tests")


def test_every_proof_paper_and_benchmark_is_a_stage() -> None:
    commands = [" ".join(stage.command) for stage in proof.stages()]
    for path in (ROOT / "tests").rglob("test_*.py"):
        listed = path.relative_to(ROOT / "tests").as_posix() in LONG_TESTS
        marked = listed or "mark." + "proof" in path.read_text("utf-8")
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
    told = proof.page(proof.done(state), three, "three")
    assert "| b |" in told
    assert "**failed** (3)" in told
    assert "2 of 3 stages passed" in told
    assert "1 of them with the sources three" in told
    assert proof.machine() in told
    elsewhere = [stage("d", proof.NOT_HERE)]  # nothing is wrong, and nothing shown
    assert proof.run_all(elsewhere, state, said, "one")
    assert "| not for this machine |" in proof.page(proof.done(state), elsewhere, "one")


def test_the_comparison_of_hours_goes_on_with_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine, from the stored results; and a table has complete starts only."""
    import birdy

    from steelyard.compare import Protocol, monte_carlo
    from steelyard.robot.library import builtin

    small = Protocol(
        estimators=("wls", "ols"), starts=2, trajectories=1, duration=2.0, control_rate=500.0, rates=(100.0,)
    )
    named = {"PROTOCOL": small, "ROBOT": "prrrp", "ESTIMATORS": ("wls", "ols"), "KEPT": tmp_path / "kept.gz",
             "RECORDS": tmp_path / "one" / "runs.jsonl"}  # fmt: skip
    for name, value in named.items():
        monkeypatch.setattr(birdy, name, value)
    birdy.RECORDS.parent.mkdir()
    monte_carlo(builtin("prrrp"), small, records=birdy.RECORDS, workers=1)
    lines = birdy.RECORDS.read_text().splitlines(keepends=True)
    birdy.RECORDS.write_text("".join(lines[:-1]))
    birdy.packed()
    monkeypatch.setattr(birdy, "RECORDS", tmp_path / "two" / "runs.jsonl")
    birdy.unpacked()
    part = birdy.so_far()
    assert part is not None
    assert (part.protocol.starts, len(part.runs)) == (1, 10)
    assert "1 of 2 starts × 1 motions × 5 levels of noise, 10 of 20 runs" in birdy.table(part)
    monte_carlo(builtin("prrrp"), small, records=birdy.RECORDS, workers=1)
    assert len(birdy.RECORDS.read_text().splitlines()) == len(lines)
    assert len(birdy.so_far().runs) == 20
