"""`LiveSource`: where the samples of a running robot come from; the registry of them, `LIVE_SOURCES`; and `Lasting`,
which opens a source again and again and knows how old its last word is."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.registry import Registry
from steelyard.robot.robot import Robot
from steelyard.watch.parts import PartState
from steelyard.watch.tally import Tally

LOOPBACK = "127.0.0.1"
# These stand for no host at all: this machine.
_ON_THIS_MACHINE = re.compile(r"^(?:127\.0\.0\.1|localhost|\[::1\]):(?=\d+$)")
# A source that cannot be reached is tried again after this long, then after twice as long, and so on.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 30.0


class SourceError(SteelyardError):
    """A source that cannot be used as asked: names it, and what would help."""


class SourceLost(SourceError):  # noqa: N818
    """A source that is not there now, and may be later."""


@dataclass(frozen=True)
class SourceOptions:
    """What sources are opened with.

    Args:
        robot: whose samples they are, joints in its order.
        mapping: what columns mean, where names alone do not tell it: a file, or the name of a preset; "" for none.
        speed: of a replay, 1 for the log's own, inf for as fast as can be; 0: a step at every line that is typed.
        size: samples that a replay hands over at once, at most.
        torque: the name of what stands for torque, where a source has several.
    """

    robot: Robot
    mapping: str = ""
    speed: float = 1.0
    size: int = 500
    torque: str = ""


class LiveSource(ABC):
    """Where samples come from. What is wrong with them is counted and told (`tally`), and ends nothing.

    Args:
        address: what stood behind the colon: a host and port, a path, a topic.
        options: what it is opened with.
    """

    description: ClassVar[str] = ""  # in a few words, for the list of sources
    example: ClassVar[str] = ""
    live: ClassVar[bool] = True  # it does not wait: where nothing comes, something is wrong
    apart: ClassVar[bool] = False  # may be read in a process of its own: it has neither threads nor libraries that do
    silent_s: ClassVar[float] = 0.0  # opened anew after so long without a word; 0: never

    def __init__(self, address: str, options: SourceOptions) -> None:
        self.address, self.options, self.tally = address, options, Tally()

    @abstractmethod
    def open(self) -> None:
        """Connect, bind, or begin; `SourceLost` where that may succeed later."""

    @abstractmethod
    def read(self, wait_s: float) -> Array | None:
        """What has come, (samples, 1 + 3 joints): t, q, dq, tau; none after `wait_s` seconds; None at the end."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything; it may be opened again."""

    @property
    def identity(self) -> str:
        """What tells this source from others, such as "tcp:5005"; a state of another source is of no use to it."""
        kind = next((name for name, made in LIVE_SOURCES.items() if made is type(self)), type(self).__name__)
        return f"{kind}:{_ON_THIS_MACHINE.sub('', self.address)}"

    def state(self) -> PartState:
        """How far it is, where it can go on from there."""
        return {}

    def restore(self, state: PartState) -> bool:
        """Go on from a `state`; False where what came since is lost."""
        return False

    def nothing(self) -> Array:
        """No samples."""
        return np.zeros((0, 1 + 3 * self.options.robot.dof))


LIVE_SOURCES: Registry[type[LiveSource]] = Registry("source", ("steelyard.watch.sources",), group="steelyard.sources")


def open_source(text: str, options: SourceOptions) -> LiveSource:
    """The source that `text` names, not yet opened: a log, "-" for standard input, or KIND:ADDRESS; with `options`."""
    kind, colon, address = text.partition(":")
    if text == "-":
        return LIVE_SOURCES["stdin"]("", options)
    if colon and kind in LIVE_SOURCES:
        return LIVE_SOURCES[kind](address, options)
    if Path(text.split("\n")[0]).exists():
        return LIVE_SOURCES["replay"](text, options)
    known = ", ".join(made.example for made in LIVE_SOURCES.values() if made.example)
    raise SourceError(f"'{text}' is neither a log that exists nor a source; sources are {known}.")


def host_and_port(address: str, kind: str, port: int | None = None) -> tuple[str, int]:
    """The host, this machine where none is named, and the port of an `address` HOST:PORT, [HOST]:PORT, PORT or HOST.

    Args:
        address: as it was typed.
        kind: of source, for the complaint.
        port: where none is named; None: one must be.
    """
    host, colon, number = address.rpartition(":")
    if not colon and (port is None or address.isdecimal()):
        host, number = "", address
    elif not colon or (port is not None and not number.isdecimal()):
        host, number = address, str(port)
    if not (number.isascii() and number.isdecimal() and 0 <= int(number) <= 65535):
        raise SourceError(f"'{kind}:{address}' names no port; write {kind}:PORT or {kind}:HOST:PORT.")
    return host.strip("[]") or LOOPBACK, int(number)


class Lasting:
    """A source that is opened again whenever it is lost, later and later, and that knows when it last spoke.

    Args:
        source: the source itself.
        stale_s: after so long without a sample what is told of the robot is stale.
        now: a clock that never goes back, s.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        source: LiveSource,
        stale_s: float = 0.5,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.source, self.stale_s = source, stale_s
        self.reopened = False  # since the samples that were read before; whoever reads takes it down
        self._now, self._sleep = now, sleep
        self._open = False
        self._opened_before = False
        self._pause, self._next, self._heard, self._spoke = _FIRST_PAUSE_S, -np.inf, now(), now()

    @property
    def age_s(self) -> float:
        """How long ago the last sample came, or this began."""
        return self._now() - self._spoke

    @property
    def stale(self) -> bool:
        return self.source.live and self.age_s > self.stale_s

    @property
    def connected(self) -> bool:
        return self._open

    def read(self, wait_s: float) -> Array | None:
        """As `LiveSource.read`, waiting for up to `wait_s` seconds; a source that is lost has no samples."""
        if not self._open and not self._try_to_open(wait_s):
            return self.source.nothing()
        try:
            rows = self.source.read(wait_s)
            if rows is not None and len(rows):
                self._heard = self._spoke = self._now()
                self._pause = _FIRST_PAUSE_S
            elif self.source.silent_s and self._now() - self._heard > self.source.silent_s:
                raise SourceLost(f"{self.source.address}: has been silent for {self.source.silent_s:g} s")
        except (SourceLost, OSError) as why:
            self._lost(why)
            return self.source.nothing()
        return rows

    def _try_to_open(self, wait_s: float) -> bool:
        left = self._next - self._now()
        if left > 0.0:
            self._sleep(min(left, wait_s))
            return False
        try:
            self.source.open()
        except (SourceLost, OSError) as why:
            self._lost(why)
            return False
        self._open, self._heard = True, self._now()
        if self._opened_before:
            self.reopened = True
            self.source.tally.count("reconnected")
        self._opened_before = True
        return True

    def _lost(self, why: Exception) -> None:
        self.close()
        self._next = self._now() + self._pause
        self._pause = min(2.0 * self._pause, _LONGEST_PAUSE_S)
        reason = str(why).rstrip(".") or type(why).__name__
        self.source.tally.count("lost", f"The source is lost ({reason}); it is tried again.")

    def close(self) -> None:
        """Let go of the source."""
        self._open = False
        self.source.close()
