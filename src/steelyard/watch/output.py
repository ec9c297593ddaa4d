"""`WatchOutput`: where what is told goes; the registry of them, `WATCH_OUTPUTS`; and `Outputs`, which serves all of
them in a thread of its own, so that a slow disk or a stopped terminal never holds up the robot's samples."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from steelyard.errors import SteelyardError
from steelyard.ground.registry import Registry
from steelyard.watch.batch import Seen
from steelyard.watch.parts import WatchEvent
from steelyard.watch.tally import Tally

# What may wait for the outputs; a watch of a running robot drops what comes after that, and counts it.
_MOST_WAITING = 4096


@dataclass(frozen=True)
class WatchReport:
    """What a watch tells at one moment.

    Args:
        t: of the last sample by the source's clock, s.
        stale: nothing has come for a while, and the rest is old.
        age_s: how long ago the last sample came, s.
        period_s: of the samples; 0 where it is not known yet.
        counts: samples, and what was wrong with others, by kind.
        parts: what each part tells, by its name.
    """

    t: float
    stale: bool
    age_s: float
    period_s: float
    counts: Mapping[str, int]
    parts: Mapping[str, Mapping[str, Any]]

    def numbers(self) -> Iterator[tuple[str, str, float | list[float]]]:
        """What is plotted: of each part by name its numbers, and lists of numbers, by name."""
        for part, told in self.parts.items():
            for name, value in told.items():
                if isinstance(value, int | float) or (
                    isinstance(value, list) and value and all(isinstance(x, int | float) for x in value)
                ):
                    yield part, name, value

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        head = {"t": self.t, "stale": self.stale, "age_s": round(self.age_s, 4), "period_s": self.period_s}
        return {**head, "counts": dict(self.counts), **{name: dict(told) for name, told in self.parts.items()}}


@dataclass(frozen=True)
class OutputSetup:
    """What outputs are made for.

    Args:
        joints: the names of the model's joints.
        title: of the model and source, for people.
        titles: of the parts, by name.
        units: of the joints' torques, "N m" or "N".
        live: the samples are of now.
        origins: pages and host names beyond this machine that servers answer to.
    """

    joints: Sequence[str]
    title: str = "steelyard watch"
    titles: Mapping[str, str] = field(default_factory=dict)
    units: Sequence[str] = ()
    live: bool = True
    origins: Sequence[str] = ()


class WatchOutput(ABC):
    """Where what is told goes.

    Args:
        where: a file, a port: what stood behind "=".
        setup: what it is made for.
    """

    description: ClassVar[str] = ""
    wants_samples: ClassVar[bool] = False  # every sample, beside what is told now and then

    def __init__(self, where: str, setup: OutputSetup) -> None:
        self.where, self.setup = where, setup
        self.tally = Tally()  # of all outputs together, once it is one of several

    def open(self) -> str:
        """Begin, in the thread that made it; a sentence for people, "" for none."""
        return ""

    def took(self, seen: Seen) -> None:  # noqa: B027
        """Samples that were `seen`."""

    @abstractmethod
    def told(self, report: WatchReport) -> None:
        """What is told now: the `report`."""

    @abstractmethod
    def happened(self, event: WatchEvent) -> None:
        """An `event`, when it is found."""

    def close(self) -> None:  # noqa: B027
        """End, and leave whole what was written."""


WATCH_OUTPUTS: Registry[type[WatchOutput]] = Registry("output", ("steelyard.watch.outputs",), group="steelyard.outputs")


def make_output(text: str, setup: OutputSetup) -> WatchOutput:
    """The output that `text` names, KIND or KIND=WHERE, for `setup`."""
    kind, _, where = text.partition("=")
    return WATCH_OUTPUTS[kind](where, setup)


class Outputs:
    """All outputs of a watch, in a thread of their own.

    Args:
        members: the outputs, opened.
        waits: nothing is dropped: whoever has more than the outputs can take waits for them, as a replay does.
        tally: where is counted what was dropped, and which output failed.
    """

    def __init__(self, members: Sequence[WatchOutput], waits: bool = False, tally: Tally | None = None) -> None:
        self.members, self.tally = list(members), tally or Tally()
        for member in self.members:
            member.tally = self.tally
        self._waits = waits
        self._queue: queue.Queue[tuple[str, Any] | None] = queue.Queue(_MOST_WAITING)
        self._wants = any(member.wants_samples for member in members)
        self._thread: threading.Thread | None = None  # begins with the first that is passed on

    def took(self, seen: Seen) -> None:
        """Pass on samples that were `seen`, where somebody wants them."""
        if self._wants:
            self._put("took", seen)

    def told(self, report: WatchReport) -> None:
        """Pass on a `report`."""
        self._put("told", report)

    def happened(self, event: WatchEvent) -> None:
        """Pass on an `event`."""
        self._put("happened", event)

    def _put(self, what: str, value: Any) -> None:
        if not self.members:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True, name="watch outputs")
            self._thread.start()
        if self._waits:
            self._queue.put((what, value))
            return
        try:
            self._queue.put_nowait((what, value))
        except queue.Full:
            self.tally.count("not written", "The outputs are too slow; some of what is told is not written.")

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            what, value = item
            for member in list(self.members):
                if what != "took" or member.wants_samples:
                    self._call(member, what, value)

    def _call(self, member: WatchOutput, what: str, *values: Any) -> None:
        try:
            getattr(member, what)(*values)
        except Exception as why:  # an output may fail in any way that a library knows; the watch goes on without it
            self.members.remove(member)
            reason = str(why) if isinstance(why, SteelyardError | OSError) else f"{type(why).__name__}: {why}"
            self.tally.count(f"output {type(member).__name__} ended", f"An output is given up ({reason.rstrip('.')}).")

    def close(self) -> None:
        """Write what still waits, and end all outputs."""
        if self._thread is not None and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        for member in list(self.members):
            self._call(member, "close")
