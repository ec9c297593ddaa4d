"""`Outcome`: the result of a command, delivered as JSON, as terminal text and as a run folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.ground.files import name_in_errors, plain
from steelyard.ground.folders import run_folder
from steelyard.ground.reasons import explained
from steelyard.ground.repeat import with_command

if TYPE_CHECKING:
    from rich.console import Console

# Functions that build a result's page and print a result.
Presentation = tuple[Callable[[Any], str], Callable[[Any, "Console", str], None]]
# A file of a run folder: its text, or a function that writes it to a path.
Content = str | Callable[[Path], object]
_ODD = re.compile(r"[^ -~]+")
RESULT, REPORT = "result.json", "report.html"


class Outcome(ABC):
    """A result of a command.

    A subclass converts itself to JSON (`to_json`) and prints itself (`print_to`). It may also build a report (`page`)
    and list additional files of the run folder (`files`). Presentation code depends on results, never the reverse:
    `page` and `print_to` import the `page.py` of their room when called.
    """

    @abstractmethod
    def to_json(self) -> Any:
        """Return plain data, with None for infinity and NaN, and with the reasons under `why_null` (`explained`)."""

    @abstractmethod
    def print_to(self, out: Console, folder: str = "") -> None:
        """Print the result to a terminal.

        Args:
            out: Console to print to.
            folder: Run folder, named in the last line; "" if none was written.
        """

    def page(self) -> str | None:
        """Return the report as one self-contained HTML page, or None."""
        return None

    def files(self) -> Mapping[str, Content]:
        """Return the additional files of a run folder, by name; a `result.json` replaces that of `to_json`."""
        return {}

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        report: bool = True,
        keep: Sequence[str] = (),
    ) -> Path:
        """Write a run folder atomically, and return its path.

        Args:
            folder: Path of the run; parent folders are created.
            overwrite: Replace an existing run, if a run wrote every file in it.
            report: Include report.html, if the result has a page.
            keep: Files of the replaced run to copy into the new one.
        """
        target = Path(folder)
        with run_folder(target, overwrite) as staging:
            for name in keep:
                with name_in_errors(target / name):
                    shutil.copyfile(target / name, staging / name)
            for name, content in self._contents(report):
                path = staging / name
                with name_in_errors(target / name):
                    path.parent.mkdir(exist_ok=True)
                    if callable(content):
                        content(path)
                    else:
                        path.write_text(content, "utf-8")
        return target

    def _contents(self, report: bool = True) -> Iterator[tuple[str, Content]]:
        own = self.files()
        if RESULT not in own:
            yield RESULT, json_text(with_command(explained(self.to_json())))
        page = self.page() if report else None
        if page is not None:
            yield REPORT, page
        yield from own.items()


class OutcomeWithPage(Outcome):
    """A result whose `page.py` builds its report and its terminal text."""

    @abstractmethod
    def view(self) -> Presentation:
        """Import and return the functions that build the page and print the result."""

    def page(self) -> str:
        return self.view()[0](self)

    def print_to(self, out: Console, folder: str = "") -> None:
        self.view()[1](self, out, folder)


def json_text(value: Any) -> str:
    """Format a `value` as JSON for run folders, with null for numbers that are not finite."""
    return printed_json(plain(value), 1) + "\n"


def printed_json(value: Any, indent: int) -> str:
    """Format plain data as JSON, with control characters and unpaired surrogates escaped.

    Args:
        value: Plain data.
        indent: Spaces per level.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    lines = text.split("\n")
    return text if "".join(lines).isprintable() else "\n".join(_ODD.sub(_escaped, line) for line in lines)


def _escaped(odd: re.Match[str]) -> str:
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in odd[0])


def file_name(name: str) -> str:
    """Return a file name for a robot's `name`, short enough for suffixes within the limit of 255 bytes."""
    fit = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
    return fit.encode()[:150].decode(errors="ignore") or "robot"
