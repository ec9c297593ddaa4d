"""`LiveSource`: a source of samples; `LIVE_SOURCES`: their registry; `ReconnectingSource`: reopens a lost source."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.monitor_base import StateArrays

LOOPBACK = "127.0.0.1"
# Host names of this machine; an address without a host means the same.
_LOCAL_HOST = re.compile(r"^(?:127\.0\.0\.1|localhost|\[::1\]):(?=\d+$)")
# Pause before a lost source is opened again; it doubles up to the maximum.
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.25, 30.0


class SourceError(SteelyardError):
    """A source that cannot be used as requested; the message names it and a remedy."""


class SourceLostError(SourceError):
    """A source that is not available now and may be later."""


@short_repr
@dataclass(frozen=True)
class SourceOptions:
    """Settings of a source.

    Args:
        robot: The robot that sends the samples; joints have its order.
        mapping: Meaning of the columns: a file or the name of a preset; "" if their names suffice.
        speed: Speed of a replay: 1 for the log's own, inf for the maximum; 0 for one step per line typed.
        size: Largest number of samples that a replay returns at once.
        torque: Signal to use as torque, if a source has several.
    """

    robot: Robot
    mapping: str = ""
    speed: float = 1.0
    size: int = 500
    torque: str = ""


class LiveSource(ABC):
    """A source of samples. Faulty samples are counted in `diagnostics` and never end the source.

    Args:
        address: Text after the colon: a host and port, a path, or a topic.
        options: Settings.
    """

    description: ClassVar[str] = ""  # for the list of sources
    example: ClassVar[str] = ""
    live: ClassVar[bool] = True  # a running robot: a pause in its samples is a fault
    forkable: ClassVar[bool] = False  # may be read in a forked process: neither it nor its libraries have threads
    max_silence_s: ClassVar[float] = 0.0  # a longer silence [s] reopens the source; 0: never

    def __init__(self, address: str, options: SourceOptions) -> None:
        self.address, self.options, self.diagnostics = address, options, Diagnostics()

    @abstractmethod
    def open(self) -> None:
        """Connect, bind or start; raise `SourceLostError` if a later attempt may succeed."""

    @abstractmethod
    def read(self, wait_s: float) -> Array | None:
        """Return samples t, q, dq, tau, shape (samples, 1 + 3 joints), after up to `wait_s` s; None at the end."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; the source may be opened again."""

    @property
    def identity(self) -> str:
        """Name of this source, such as "tcp:5005"; a state of another source does not fit."""
        kind = next((name for name, cls in LIVE_SOURCES.items() if cls is type(self)), type(self).__name__)
        return f"{kind}:{_LOCAL_HOST.sub('', self.address)}"

    def state(self) -> StateArrays:
        """Return the position in the stream, if the source can continue from there."""
        return {}

    def restore(self, state: StateArrays) -> bool:
        """Continue from a `state`; return False if samples since then are lost."""
        return False

    def no_samples(self) -> Array:
        """Return an empty table of samples."""
        return np.zeros((0, 1 + 3 * self.options.robot.dof))


LIVE_SOURCES: Registry[type[LiveSource]] = Registry("source", ("steelyard.watch.sources",), group="steelyard.sources")


def open_source(text: str, options: SourceOptions) -> LiveSource:
    """Create a source without opening it.

    Args:
        text: A log, "-" for standard input, or KIND:ADDRESS.
        options: Settings.
    """
    kind, colon, address = text.partition(":")
    if text == "-":
        return LIVE_SOURCES["stdin"]("", options)
    if colon and kind in LIVE_SOURCES:
        return LIVE_SOURCES[kind](address, options)
    if Path(text.split("\n")[0]).exists():
        return LIVE_SOURCES["replay"](text, options)
    examples = ", ".join(cls.example for cls in LIVE_SOURCES.values() if cls.example)
    raise SourceError(f"'{text}' is neither an existing log nor a source; sources are {examples}.")


def host_and_port(address: str, kind: str, port: int | None = None) -> tuple[str, int]:
    """Split an address into host and port; without a host it is this machine.

    Args:
        address: HOST:PORT, [HOST]:PORT, PORT or HOST.
        kind: Kind of source, for the error message.
        port: Default port; None if the address must have one.
    """
    host, colon, number = address.rpartition(":")
    if not colon and (port is None or address.isdecimal()):
        host, number = "", address
    elif not colon or (port is not None and not number.isdecimal()):
        host, number = address, str(port)
    if not (number.isascii() and number.isdecimal() and 0 <= int(number) <= 65535):
        raise SourceError(f"'{kind}:{address}' has no valid port; write {kind}:PORT or {kind}:HOST:PORT.")
    return host.strip("[]") or LOOPBACK, int(number)


class ReconnectingSource:
    """Reopens a source when it is lost, with growing pauses, and measures the age of its last sample.

    Args:
        source: The source.
        stale_s: Time without samples after which the report is stale [s].
        now: Monotonic clock [s].
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        source: LiveSource,
        stale_s: float = 0.5,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.source, self.stale_s = source, stale_s
        self.reopened = False  # since the previous samples; the reader resets it
        self._now, self._sleep = now, sleep
        self._open = False
        self._opened_before = False
        self._pause, self._retry_at, self._last_heard, self._last_sample = _FIRST_PAUSE_S, -np.inf, now(), now()

    @property
    def age_s(self) -> float:
        """Time since the last sample, or since the start [s]."""
        return self._now() - self._last_sample

    @property
    def stale(self) -> bool:
        return self.source.live and self.age_s > self.stale_s

    @property
    def connected(self) -> bool:
        return self._open

    def read(self, wait_s: float) -> Array | None:
        """Read as `LiveSource.read` with `wait_s`; a lost source returns no samples."""
        if not self._open and not self._try_to_open(wait_s):
            return self.source.no_samples()
        try:
            rows = self.source.read(wait_s)
            if rows is not None and len(rows):
                self._last_heard = self._last_sample = self._now()
                self._pause = _FIRST_PAUSE_S
            elif self.source.max_silence_s and self._now() - self._last_heard > self.source.max_silence_s:
                raise SourceLostError(f"{self.source.address}: sent nothing for {self.source.max_silence_s:g} s")
        except (SourceLostError, OSError) as why:
            self._on_loss(why)
            return self.source.no_samples()
        return rows

    def _try_to_open(self, wait_s: float) -> bool:
        remaining_s = self._retry_at - self._now()
        if remaining_s > 0.0:
            self._sleep(min(remaining_s, wait_s))
            return False
        try:
            self.source.open()
        except (SourceLostError, OSError) as why:
            self._on_loss(why)
            return False
        self._open, self._last_heard = True, self._now()
        if self._opened_before:
            self.reopened = True
            self.source.diagnostics.count("reconnected")
        self._opened_before = True
        return True

    def _on_loss(self, why: Exception) -> None:
        self.close()
        self._retry_at = self._now() + self._pause
        self._pause = min(2.0 * self._pause, _MAX_PAUSE_S)
        reason = str(why).rstrip(".") or type(why).__name__
        self.source.diagnostics.count("lost", f"The source is lost ({reason}); the watch keeps trying to reopen it.")

    def close(self) -> None:
        """Close the source."""
        self._open = False
        self.source.close()
