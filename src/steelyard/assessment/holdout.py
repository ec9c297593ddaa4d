"""Split a log into a part to identify from and a part to judge by: in time, never by random rows."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import overload

import numpy as np

from steelyard.errors import LogError, SteelyardError
from steelyard.signals.excerpt import joined_ranges, moving_ranges, part_of
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile, Source, border_of


def moving_part(log: Log) -> Log:
    """`log` without its stand-stills, in which static friction may be anything and hides what is looked for."""
    part = part_of(log, moving_ranges(log))
    if part is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: nothing moves in it.")
    return part


@overload
def keep_last(log: Log, share: float) -> tuple[Log, Log]: ...
@overload
def keep_last(log: LogFile, share: float) -> tuple[LogFile, LogFile]: ...
@overload
def keep_last(log: Source, share: float) -> tuple[Source, Source]: ...
def keep_last(log: Source, share: float) -> tuple[Source, Source]:
    """The first part to identify from, and the last to judge by. Of a file that is streamed both are streamed, too.

    Args:
        log: what is split.
        share: of the rows that the last part has, from 0 to 1.
    """
    if not 0.0 < share < 1.0:
        raise SteelyardError(f"--holdout is {share:g}; give a share between 0 and 1, such as 0.3.")
    if not isinstance(log, Log):
        return log.split(share)
    border = border_of(len(log), share)
    return _both(log, [(0, border)], [(border, len(log))])


@overload
def keep_blocks(log: Log, seconds: float, every: int) -> tuple[Log, Log]: ...
@overload
def keep_blocks(log: Source, seconds: float, every: int) -> tuple[Source, Source]: ...
def keep_blocks(log: Source, seconds: float, every: int) -> tuple[Source, Source]:
    """Some blocks of time to judge by, the others to identify from. Of a file that is streamed both are streamed, too.

    Args:
        log: what is split.
        seconds: the length of a block.
        every: of so many blocks the last is judged by.
    """
    if not (seconds > 0.0 and every >= 2):
        raise SteelyardError(f"--holdout-blocks is {seconds:g}:{every}; give seconds:every, such as 0.5:3.")
    if not isinstance(log, Log):
        return _share_of_blocks(log, seconds, every, judged=False), _share_of_blocks(log, seconds, every, judged=True)
    return _both(log, *_blocks(log, float(log.t[0]), seconds, every))


def _share_of_blocks(log: LogFile, seconds: float, every: int, judged: bool) -> LogFile:
    def cut(piece: Log, start: float) -> Log | None:
        return part_of(piece, _blocks(piece, start, seconds, every)[judged])

    return replace(log, cut=cut, opened=log.reader)


def _blocks(log: Log, start: float, seconds: float, every: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The ranges of a log that are identified from and those that are judged by; blocks count from time `start`."""
    number = np.floor((log.t - start) / seconds + 1e-9).astype(int)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(log)]])
    blocks = [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    judged = [b for b in blocks if number[b[0]] % every == every - 1]
    used = [b for b in blocks if number[b[0]] % every != every - 1]
    return joined_ranges(used), judged


def _both(log: Log, used: list[tuple[int, int]], judged: list[tuple[int, int]]) -> tuple[Log, Log]:
    first, second = part_of(log, used), part_of(log, judged)
    if first is None or second is None:
        raise SteelyardError("The hold-out leaves one side empty; the log is too short for it.")
    return first, second
