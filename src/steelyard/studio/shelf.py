"""`ShelvedRun`: a run in the folder as pages show it: what it is, what it was made from and with, and what came out.

Only what a page needs is read, and nothing is read twice as long as it does not change: a run is told by its
manifest, which is small; its result is looked at when the run is shown.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from steelyard.ground.displayed import Glance
from steelyard.ground.folders import MANIFEST
from steelyard.ground.outcome import REPORT, RESULT
from steelyard.ground.untrusted import parse_json, read_json, read_text
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.summaries import RunSummary, guessed_kind, summary_of
from steelyard.studio.thumbnails import sign_thumbnail

# Bytes of a result that the server itself reads; a longer one is for its report.
_LARGEST = 8_000_000
_OPTION = re.compile(r"--?[a-zA-Z]")
# Where the result goes is no setting of it.
_NO_SETTINGS = ("-o", "--output", "--overwrite", "--json")
# Commands of two words.
_TWO_WORDS = ("compare", "local")
PYTHON_MADE = "python"


@dataclass(frozen=True)
class ShelvedRun:
    """A run.

    Args:
        path: its folder.
        name: the same, from the studio's folder.
        when: it was written, seconds since 1970.
        command: what repeats it; "" where Python made it.
        kind: the command's name, "compare schemes"; `PYTHON_MADE` where nothing tells.
        inputs: robot, logs and runs that the command names.
        settings: its options, with their values.
    """

    path: Path
    name: str
    when: float
    command: str
    kind: str
    inputs: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def summary(self) -> RunSummary:
        """Its result in a sentence and a picture."""
        try:
            found = (self.path / RESULT).stat()
        except OSError:
            return RunSummary(Glance("warning", "It has no result.json."), sign_thumbnail("No picture", "?"))
        return _summary(str(self.path), self.kind, found.st_mtime_ns, found.st_size)

    def result(self) -> dict[str, Any]:
        """Its result.json, as far as it is not so long that only its report should show it."""
        file = self.path / RESULT
        if file.is_file() and file.stat().st_size > _LARGEST:
            raise StudioError(f"{self.name}: its {RESULT} is too long to be shown here; look at its report.")
        found = read_json(file, StudioError, "delete the run, and make it anew").value
        if not isinstance(found, dict):
            raise StudioError(f"{self.name}: its {RESULT} is no table; delete the run, and make it anew.")
        return found

    @property
    def has_report(self) -> bool:
        """Whether there is a page of it."""
        return (self.path / REPORT).is_file()

    @property
    def has_model(self) -> bool:
        """Whether it found a model of a whole robot, which can be used."""
        return self.kind in ("identify", "demo")

    def files(self) -> list[tuple[str, int]]:
        """What it holds: names, and sizes in bytes."""
        return [(path.relative_to(self.path).as_posix(), path.lstat().st_size) for path in _files(self.path)]


def shelved_runs(place: StudioFolder) -> list[ShelvedRun]:
    """Every run of a `place`, the newest first."""
    return [shelved(place, path) for path in place.runs()]


def shelved(place: StudioFolder, path: Path) -> ShelvedRun:
    """The run in the folder `path` of a `place`."""
    found = (path / MANIFEST).stat()
    try:
        command = place.command_of(path)
    except StudioError:  # a manifest that cannot be read is no reason not to show the run
        command = ""
    kind, inputs, settings = _told(str(path), found.st_mtime_ns, command)
    return ShelvedRun(path, place.relative(path), found.st_mtime, command, kind, inputs, settings)


def _files(folder: Path) -> Iterator[Path]:
    """Below a folder, in order; links are not followed."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: (e.is_dir(follow_symlinks=False), e.name)):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


@lru_cache(4096)
def _told(path: str, _changed: int, command: str) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    kind, inputs, settings = command_parts(command)
    if not kind:
        kind = guessed_kind(_small_result(path) or {}) or PYTHON_MADE
    return kind, inputs, settings


@lru_cache(4096)
def _summary(path: str, kind: str, _changed: int, size: int) -> RunSummary:
    if size > _LARGEST:
        return RunSummary(Glance("note", "Its result is long; the report shows it."), sign_thumbnail("", "···"))
    found = _small_result(path)
    if found is None:
        return RunSummary(Glance("bad", "Its result.json cannot be read."), sign_thumbnail("No picture", "?"))
    return summary_of(kind, found)


def _small_result(path: str) -> dict[str, Any] | None:
    try:
        file = Path(path) / RESULT
        found = parse_json(read_text(file, _LARGEST, StudioError), str(file), StudioError)
    except StudioError:
        return None
    return found if isinstance(found, dict) else None


def command_parts(command: str) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The name of a `command`, what it is given, and its options with their values; "" if it is none of ours."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "", (), ()
    if words[:1] != ["steelyard"]:
        return "", (), ()
    words = words[3:] if words[1:2] == ["--project"] else words[1:]
    count = 2 if words[:1] and words[0] in _TWO_WORDS else 1
    kind, inputs, settings = " ".join(words[:count])[:40], [], dict[str, list[str]]()
    option = ""
    for word in words[count:]:
        if _OPTION.match(word):
            option = word
            settings.setdefault(option, [])
        elif option:
            settings[option].append(word)
        else:
            inputs.append(word)
    kept = tuple((name, " ".join(values)) for name, values in settings.items() if name not in _NO_SETTINGS)
    return kind, tuple(inputs), kept
