"""Splits logs into identification and validation data by time, never by random rows."""

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
    """Return a `log` without standstill, where static friction is undetermined."""
    part = part_of(log, moving_ranges(log))
    if part is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: no joint moves.")
    return part


@overload
def split_last(log: Log, share: float) -> tuple[Log, Log]: ...
@overload
def split_last(log: LogFile, share: float) -> tuple[LogFile, LogFile]: ...
@overload
def split_last(log: Source, share: float) -> tuple[Source, Source]: ...
def split_last(log: Source, share: float) -> tuple[Source, Source]:
    """Split a log into a first part for identification and a last part for validation.

    The parts of a streamed file are also streamed.

    Args:
        log: Log to split.
        share: Share of the rows in the last part, 0 to 1.
    """
    if not 0.0 < share < 1.0:
        raise SteelyardError(f"--holdout is {share:g}. Give a share between 0 and 1, for example 0.3.")
    if not isinstance(log, Log):
        return log.split(share)
    border = border_of(len(log), share)
    return _split(log, [(0, border)], [(border, len(log))])


@overload
def split_blocks(log: Log, seconds: float, every: int) -> tuple[Log, Log]: ...
@overload
def split_blocks(log: Source, seconds: float, every: int) -> tuple[Source, Source]: ...
def split_blocks(log: Source, seconds: float, every: int) -> tuple[Source, Source]:
    """Split a log into blocks of time for identification and for validation.

    The parts of a streamed file are also streamed.

    Args:
        log: Log to split.
        seconds: Length of a block [s].
        every: Every n-th block is for validation.
    """
    if not (seconds > 0.0 and every >= 2):
        raise SteelyardError(f"--holdout-blocks is {seconds:g}:{every}. Give seconds:every, for example 0.5:3.")
    if not isinstance(log, Log):
        return _share_of_blocks(log, seconds, every, validation=False), _share_of_blocks(
            log, seconds, every, validation=True
        )
    return _split(log, *_blocks(log, float(log.t[0]), seconds, every))


def _share_of_blocks(log: LogFile, seconds: float, every: int, validation: bool) -> LogFile:
    def cut(piece: Log, start: float) -> Log | None:
        return part_of(piece, _blocks(piece, start, seconds, every)[validation])

    return replace(log, cut=cut, opened=log.reader)


def _blocks(log: Log, start: float, seconds: float, every: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the ranges for identification and for validation; blocks start at time `start`."""
    number = np.floor((log.t - start) / seconds + 1e-9).astype(int)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(log)]])
    blocks = [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    validation = [b for b in blocks if number[b[0]] % every == every - 1]
    used = [b for b in blocks if number[b[0]] % every != every - 1]
    return joined_ranges(used), validation


def _split(log: Log, used: list[tuple[int, int]], validation: list[tuple[int, int]]) -> tuple[Log, Log]:
    first, second = part_of(log, used), part_of(log, validation)
    if first is None or second is None:
        raise SteelyardError("The log is too short for this hold-out: one part is empty.")
    return first, second
