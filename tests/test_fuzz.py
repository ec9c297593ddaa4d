"""A short form of the campaign (`make fuzz`), with fixed seeds; and that it would see what it looks for."""

import os
import subprocess
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("resource", reason="the campaign limits memory as Unix does")

from fuzz import mutators, plot, run
from fuzz.readers import Reader, make_readers
from steelyard.errors import SteelyardError
from steelyard.ground.numbers import percent

INPUTS, SECONDS = 6, 0.1  # per reader


@pytest.fixture(scope="module")
def watch() -> run.Watch:
    return run.Watch()


def test_no_reader_is_surprised(tmp_path: Path, watch: run.Watch) -> None:
    (tmp_path / "beside").mkdir()
    done = {
        reader.name: run.campaign(reader, tmp_path / "state", 1, SECONDS, INPUTS, watch)
        for reader in make_readers(tmp_path / "beside")
    }
    assert {name: found["findings"] for name, found in done.items() if found["findings"]} == {}
    assert len(done) >= 24
    assert sum(found["read"] for found in done.values()) > len(done)  # and not all is refused


ODD_JSON = {
    "nested 10,000 deep": b"[" * 10_000 + b"]" * 10_000,
    "tables in tables": b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "a number of 5,000 digits": b"[" + b"9" * 5000 + b"]",
    "not a number": b'{"format": NaN}',
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "a table": b"{}",
    "cut": b'{"format": ',
    "no text": b"\xff\xfe\x00",
}


def test_every_document_of_ours_is_refused_where_it_is_damaged(tmp_path: Path, watch: run.Watch) -> None:
    """Sidecars, friction runs, checkpoints, designs, banks, motions, unfinished items: in one sentence."""
    (tmp_path / "beside").mkdir()
    readers = [reader for reader in make_readers(tmp_path / "beside") if reader.suffix == ".json"]
    assert len(readers) >= 10
    for reader in readers:
        for what, data in ODD_JSON.items():
            if reader.name == "unfinished-item" and what == "a table":
                continue  # all of it may be missing
            file = tmp_path / f"input{reader.suffix}"
            file.write_bytes(data)
            with pytest.raises(SteelyardError, match=r"json|folder|format|schema"):
                reader.read(file)


def too_long(path: Path) -> None:
    raise SteelyardError("x" * 10_000)


def too_slow(path: Path) -> None:
    time.sleep(30.0)


def too_free(path: Path) -> None:
    subprocess.run(["true"], check=True)


def too_loud(path: Path) -> None:
    warnings.warn("overflow encountered in square", RuntimeWarning, stacklevel=1)


def broken(path: Path) -> None:
    raise KeyError(path)


@pytest.mark.parametrize(
    ("read", "word"),
    [(broken, "KeyError"), (too_slow, "Hang"), (too_free, "Executed"), (too_loud, "RuntimeWarning")],
)
def test_the_campaign_would_see(
    tmp_path: Path, watch: run.Watch, monkeypatch: pytest.MonkeyPatch, read: Any, word: str
) -> None:
    monkeypatch.setattr(run, "SECONDS_EACH", 0.2)
    reader = Reader("odd", ".txt", (b"1 2 3",), mutators.change_text, read)
    done = run.campaign(reader, tmp_path, 0, 5.0, 2, watch)
    assert done["findings"]
    assert any(word in path.read_text() for path in (tmp_path / "odd" / "findings").glob("*.txt"))


def test_a_message_is_cut_before_anyone_sees_it(tmp_path: Path, watch: run.Watch) -> None:
    (tmp_path / "a").touch()
    assert run.complaint(too_long, tmp_path / "a", watch) is None


def test_the_campaign_goes_on_where_it_ended(tmp_path: Path, watch: run.Watch) -> None:
    """The same seed gives the same inputs, in one go or in two."""
    seen: list[bytes] = []
    reader = Reader(
        "odd", ".txt", (b"1 2 3\n4 5 6",), mutators.change_text, lambda path: seen.append(path.read_bytes())
    )
    run.campaign(reader, tmp_path / "one", 5, 60.0, 40, watch)
    once = seen[2:]  # the seed comes first, untraced and traced
    seen.clear()
    for _ in range(2):
        run.campaign(reader, tmp_path / "two", 5, 60.0, 20, watch)
    assert len(once) == 40
    assert [data for data in seen if data != reader.seeds[0]][:20] == [d for d in once if d != reader.seeds[0]][:20]
    assert os.path.exists(tmp_path / "two" / "odd" / "state.json")


def test_a_starved_process_does_not_hang(tmp_path: Path, watch: run.Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine other processes take seconds; these do not count for the reader."""
    clock = iter((0.0, 0.05, 0.4))  # of the process: when it begins, and at two alarms
    monkeypatch.setattr(run, "SECONDS_EACH", 0.1)
    monkeypatch.setattr(run, "_own_time", lambda: next(clock))
    begun = time.monotonic()
    assert "Hang" in (run.complaint(too_slow, tmp_path, watch) or "")
    assert time.monotonic() - begun > 0.14


def test_findings_that_were_mended_go(tmp_path: Path, watch: run.Watch) -> None:
    reader = Reader("odd", ".txt", (b"1 2 3",), mutators.change_text, broken)
    assert run.campaign(reader, tmp_path, 0, 5.0, 2, watch)["findings"]
    assert run.again(reader, tmp_path, watch)
    assert run.again(replace(reader, read=lambda path: None), tmp_path, watch) == {}
    assert not list((tmp_path / "odd" / "findings").glob("*.txt"))


def test_counts_and_curves_of_a_campaign(tmp_path: Path, watch: run.Watch) -> None:
    reader = Reader("odd", ".txt", (b"1 2 3",), mutators.change_text, lambda path: percent(3.0))
    run.campaign(reader, tmp_path, 0, 60.0, 60, watch)
    (counts,) = plot.all_counts(tmp_path)
    assert (counts.inputs, counts.read, counts.findings) == (60, 60, 0)
    assert "| odd | 60 | 60 |" in plot.table([counts])
    assert plot.figure([counts]).count("<polyline") == 1
    page = plot.with_table(Path("docs/reliability.md").read_text(encoding="utf-8"), plot.table([counts]))
    assert "| odd | 60 | 60 |" in page
