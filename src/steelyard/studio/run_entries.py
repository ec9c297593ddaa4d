"""`RunEntry`: a run of the folder for display: command, inputs, settings and summary.

A list reads only the small manifests; results are read when a run is shown, and cached until they change.
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

from steelyard.ground.display import Headline
from steelyard.ground.folders import MANIFEST
from steelyard.ground.outcome import REPORT, RESULT
from steelyard.ground.untrusted_files import parse_json, read_json, read_text
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.summaries import RunSummary, guessed_kind, summary_of
from steelyard.studio.thumbnails import sign_thumbnail

# Largest result that the server reads [bytes]; larger ones are shown by their report only.
_LARGEST_RESULT = 8_000_000
_OPTION = re.compile(r"--?[a-zA-Z]")
# Options about the output, which are not settings of the result.
_NO_SETTINGS = ("-o", "--output", "--overwrite", "--json")
# Commands of two words.
_TWO_WORDS = ("compare", "local")
PYTHON_MADE = "python"


@dataclass(frozen=True)
class RunEntry:
    """A run.

    Args:
        path: Its folder.
        name: Its path relative to the studio's folder.
        when: Time when it was written [s since 1970].
        command: Command that repeats it; "" for a run written from Python.
        kind: Name of the command, such as "compare schemes"; `PYTHON_MADE` if unknown.
        inputs: Robot, logs and runs that the command names.
        settings: Options and values of the command.
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
        """Its result as a verdict and a small picture."""
        try:
            state = (self.path / RESULT).stat()
        except OSError:
            return RunSummary(Headline("warning", "This run has no result.json."), sign_thumbnail("No picture", "?"))
        return _summary(str(self.path), self.kind, state.st_mtime_ns, state.st_size)

    def result(self) -> dict[str, Any]:
        """Read its result.json; a StudioError if it is too large or damaged."""
        file = self.path / RESULT
        if file.is_file() and file.stat().st_size > _LARGEST_RESULT:
            raise StudioError(f"{self.name}: {RESULT} is too large to show here; open the run's report.")
        value = read_json(file, StudioError, "delete the run and create it again").value
        if not isinstance(value, dict):
            raise StudioError(f"{self.name}: {RESULT} is not a JSON object; delete the run and create it again.")
        return value

    @property
    def has_report(self) -> bool:
        """Whether it has a report."""
        return (self.path / REPORT).is_file()

    @property
    def has_model(self) -> bool:
        """Whether it holds the model of a whole robot."""
        return self.kind in ("identify", "demo")

    def files(self) -> list[tuple[str, int]]:
        """List the names and sizes [bytes] of its files."""
        return [(path.relative_to(self.path).as_posix(), path.lstat().st_size) for path in _files(self.path)]


def run_entries(folder: StudioFolder) -> list[RunEntry]:
    """List every run of a `folder`, newest first."""
    return [run_entry(folder, path) for path in folder.run_paths()]


def run_entry(folder: StudioFolder, path: Path) -> RunEntry:
    """Read the entry of a run.

    Args:
        folder: The studio's folder.
        path: Path of the run.
    """
    state = (path / MANIFEST).stat()
    try:
        command = folder.command_of(path)
    except StudioError:  # a run with an unreadable manifest is still shown
        command = ""
    kind, inputs, settings = _parts(str(path), state.st_mtime_ns, command)
    return RunEntry(path, folder.relative(path), state.st_mtime, command, kind, inputs, settings)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in order, without following links."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: (e.is_dir(follow_symlinks=False), e.name)):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


@lru_cache(4096)
def _parts(path: str, _changed: int, command: str) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    kind, inputs, settings = command_parts(command)
    if not kind:
        kind = guessed_kind(_small_result(path) or {}) or PYTHON_MADE
    return kind, inputs, settings


@lru_cache(4096)
def _summary(path: str, kind: str, _changed: int, size: int) -> RunSummary:
    if size > _LARGEST_RESULT:
        return RunSummary(Headline("note", "The result is large; open the report."), sign_thumbnail("", "···"))
    result = _small_result(path)
    if result is None:
        return RunSummary(Headline("bad", "The result.json of this run is damaged."), sign_thumbnail("No picture", "?"))
    return summary_of(kind, result)


def _small_result(path: str) -> dict[str, Any] | None:
    try:
        file = Path(path) / RESULT
        value = parse_json(read_text(file, _LARGEST_RESULT, StudioError), str(file), StudioError)
    except StudioError:
        return None
    return value if isinstance(value, dict) else None


def command_parts(command: str) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Split a `command` into its name, inputs and options with values; all empty if it is not of this package."""
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
    options = tuple((name, " ".join(values)) for name, values in settings.items() if name not in _NO_SETTINGS)
    return kind, tuple(inputs), options
