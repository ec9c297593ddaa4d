"""`Stage`: base class of the six stages and the library. Each file of `stages/` registers one in `STUDIO_STAGES`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from steelyard.ground.grades import Tone, tone
from steelyard.ground.registry import Registry
from steelyard.report.elements import Html
from steelyard.studio.helper_process import HelperProcess
from steelyard.studio.jobs import Jobs
from steelyard.studio.studio_folder import StudioError, StudioFolder

# Order of the stages on the rail (the navigation list); the library of runs is not on it.
RAIL = ("robot", "data", "check", "motion", "identify", "use")
StatusKind = Literal["empty", "done", "working", "warning", "bad"]
_OF_TONES: dict[Tone, StatusKind] = {"good": "done", "note": "done", "warning": "warning", "bad": "bad"}


def status_kind(grade: str) -> StatusKind:
    """Return the kind of a stage's status for the `grade` of its result."""
    return _OF_TONES[tone(grade)]


@dataclass(frozen=True)
class StageStatus:
    """Status of a stage on the rail.

    Attributes:
        kind: Shown as a sign.
        words: A short text.
    """

    kind: StatusKind
    words: str


@dataclass(frozen=True)
class StageContext:
    """Everything that stages work with.

    Attributes:
        folder: The studio's folder.
        jobs: Its jobs.
        helper: Process for small computations.
    """

    folder: StudioFolder
    jobs: Jobs
    helper: HelperProcess


class _MissingFieldError(StudioError, KeyError):
    """A form field is missing; also a KeyError, so that `get` and `in` of Mapping work."""

    __str__ = Exception.__str__


class FormData(Mapping[str, str]):
    """Fields of a form or query: indexing gives the last value of a name, `all` gives every value.

    Args:
        pairs: Names and values, in order.
    """

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._last = dict(pairs)

    def __getitem__(self, name: str) -> str:
        if name not in self._last:
            raise _MissingFieldError(f"The form lacks the field '{name}'; reload the page.")
        return self._last[name]

    def __contains__(self, name: object) -> bool:
        return name in self._last

    def get(self, name: str, default: Any = None) -> Any:
        """Return the last value of a field.

        Args:
            name: Name of the field.
            default: Value if it is missing.
        """
        return self._last.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def all(self, name: str) -> list[str]:
        """Return every value of the field `name`."""
        return [value for key, value in self._pairs if key == name]


# Returns HTML for the target element of the form, or None to render the stage's body again.
Action = Callable[[StageContext, FormData], Awaitable[Html | None]]


class Stage(ABC):
    """Base class of a stage.

    `status` and `body` are computed from the disk, never from memory, because the page may be reloaded and the server
    restarted at any moment. Forms and buttons call `actions` by `POST /do/STAGE/ACTION`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    # Scripts in `assets/` that its body needs, besides those of every page.
    scripts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    async def status(self, context: StageContext) -> StageStatus:
        """Return the status; must be fast, because every page shows it."""

    @abstractmethod
    async def body(self, context: StageContext, query: FormData) -> Html:
        """Render the stage.

        Args:
            context: Folder, jobs and helper process.
            query: Query of the address.
        """

    def actions(self) -> Mapping[str, Action]:
        """Return the actions by name."""
        return {}


STUDIO_STAGES: Registry[Stage] = Registry("stage", ("steelyard.studio.stages",))
