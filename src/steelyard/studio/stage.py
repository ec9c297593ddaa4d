"""`Stage`: one of the six on the rail. Each stands in a file of `stages/` and enters itself in `STUDIO_STAGES`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from steelyard.ground.registry import Registry
from steelyard.report.elements import Html
from steelyard.studio.aside import AsideProcess
from steelyard.studio.jobs import Jobs
from steelyard.studio.place import StudioError, StudioFolder

# The order on the rail; the library of runs stands apart.
RAIL = ("robot", "data", "check", "motion", "identify", "use")
StandingKind = Literal["empty", "done", "working", "warning", "bad"]


@dataclass(frozen=True)
class Standing:
    """Where a stage stands: a kind, which the rail shows as a sign, and a few words."""

    kind: StandingKind
    words: str


@dataclass(frozen=True)
class Desk:
    """What stages work with: the folder, the jobs, and the process for small computations."""

    place: StudioFolder
    jobs: Jobs
    aside: AsideProcess


class _LacksError(StudioError, KeyError):
    """A field that was not sent: whoever asks by `get` or `in` asks on."""

    __str__ = Exception.__str__


class Sent(Mapping[str, str]):
    """What a browser sent: the last value of each name; `all` gives every one of them.

    Args:
        pairs: names and values, in order.
    """

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._last = dict(pairs)

    def __getitem__(self, name: str) -> str:
        if name not in self._last:
            raise _LacksError(f"The form lacks '{name}'; reload the page.")
        return self._last[name]

    def __contains__(self, name: object) -> bool:
        return name in self._last

    def get(self, name: str, default: Any = None) -> Any:
        """The last value of a `name`, or the `default`."""
        return self._last.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def all(self, name: str) -> list[str]:
        """Every value of a `name`."""
        return [value for key, value in self._pairs if key == name]


# Gives HTML in place of the element that the form names; None: the stage's body anew.
Action = Callable[[Desk, Sent], Awaitable[Html | None]]


class Stage(ABC):
    """A stage.

    A stage gives its `standing` and its `body` from what is on the disk, never from memory: the page may be reloaded,
    and the server restarted, at any moment. `actions` are what forms and buttons call, `POST /do/STAGE/ACTION`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    # Scripts of `assets/` that its body needs, beside those of every page.
    scripts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    async def standing(self, desk: Desk) -> Standing:
        """Where it stands; quick, since every page asks."""

    @abstractmethod
    async def body(self, desk: Desk, query: Sent) -> Html:
        """What it shows; `query` is that of the address."""

    def actions(self) -> Mapping[str, Action]:
        """What can be done, by name."""
        return {}


STUDIO_STAGES: Registry[Stage] = Registry("stage", ("steelyard.studio.stages",))
