"""`Outcome`: what a command or a verb found, and the one way to hand it out: to machines, to people, as a folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.ground.files import named, plain
from steelyard.ground.folders import run_folder
from steelyard.ground.reasons import explained
from steelyard.ground.repeat import with_command

if TYPE_CHECKING:
    from rich.console import Console

# Makes a result's page; prints a result.
Presentation = tuple[Callable[[Any], str], Callable[[Any, "Console", str], None]]
# A file of a run folder: its text, or a function that writes it to the path it is given.
Content = str | Callable[[Path], object]
_ODD = re.compile(r"[^ -~]+")
RESULT, REPORT = "result.json", "report.html"


class Outcome(ABC):
    """A result that can be handed out.

    A result says what it is for machines (`to_json`) and for a terminal (`tell`); where it has a page it makes one
    (`page`), and where a run folder holds more than result.json and report.html it lists that (`files`). What looks at
    results may depend on them, never the other way: `page` and `tell` import `page.py` of their room when called.
    """

    @abstractmethod
    def to_json(self) -> Any:
        """Plain data: no infinities and no NaN, but None, and under `why_null` the reason (`explained`)."""

    @abstractmethod
    def tell(self, out: Console, folder: str = "") -> None:
        """Print it for people.

        Args:
            out: where to.
            folder: the run folder that was written, for the last line; "" if none was.
        """

    def page(self) -> str | None:
        """The report, one self-contained HTML page; None where there is none."""
        return None

    def files(self) -> Mapping[str, Content]:
        """What else a run folder holds, by name; `result.json` here stands in for `to_json`."""
        return {}

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        report: bool = True,
        keep: Sequence[str] = (),
    ) -> Path:
        """Write a run folder, which appears whole or not at all, and return its path.

        Args:
            folder: where to; its parents are made.
            overwrite: replace an existing run, whole, if a run wrote all that it holds.
            report: with report.html, where there is a page.
            keep: files of the run that is replaced which the new one has, too.
        """
        place = Path(folder)
        with run_folder(place, overwrite) as aside:
            for name in keep:
                with named(place / name):
                    shutil.copyfile(place / name, aside / name)
            for name, content in self._contents(report):
                path = aside / name
                with named(place / name):
                    path.parent.mkdir(exist_ok=True)
                    if callable(content):
                        content(path)
                    else:
                        path.write_text(content, "utf-8")
        return place

    def _contents(self, report: bool = True) -> Iterator[tuple[str, Content]]:
        own = self.files()
        if RESULT not in own:
            yield RESULT, json_text(with_command(explained(self.to_json())))
        page = self.page() if report else None
        if page is not None:
            yield REPORT, page
        yield from own.items()


class Viewed(Outcome):
    """A result with a page, which stands beside the words for a terminal in `page.py` of its room."""

    @abstractmethod
    def view(self) -> Presentation:
        """What makes its page, and what prints it; imported when called."""

    def page(self) -> str:
        return self.view()[0](self)

    def tell(self, out: Console, folder: str = "") -> None:
        self.view()[1](self, out, folder)


def json_text(value: Any) -> str:
    """`value` as JSON, the way run folders hold it: null for what is not finite."""
    return printed_json(plain(value), 1) + "\n"


def printed_json(value: Any, indent: int) -> str:
    """`value` as JSON, so many spaces deep (`indent`), in which nothing moves a cursor or is half a character."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    lines = text.split("\n")
    return text if "".join(lines).isprintable() else "\n".join(_ODD.sub(_escaped, line) for line in lines)


def _escaped(odd: re.Match[str]) -> str:
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in odd[0])


def file_name(name: str) -> str:
    """A robot's `name` as that of a file, which may have some 250 bytes with what is put behind it."""
    fit = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
    return fit.encode()[:150].decode(errors="ignore") or "robot"
