"""Refusals of hostile or odd input: one short sentence, at once, that names the fault."""

import contextlib
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from steelyard.errors import SteelyardError


@contextlib.contextmanager
def within(most_bytes: int | None) -> Iterator[None]:
    """Limit of the memory that may be requested meanwhile; None: unchecked, which is faster."""
    if most_bytes is None:
        yield
        return
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()


def refused(
    make: Callable[[], object],
    *words: str,
    error: type[SteelyardError] = SteelyardError,
    seconds: float = 2.0,
    most_bytes: int | None = None,
) -> str:
    """The one sentence of a refusal, which takes neither long nor much memory, and names all the `words`.

    Two `seconds` of the processor are far more than any of these takes, far less than the minutes that some took.
    """
    begun = time.process_time()
    with within(most_bytes), pytest.raises(error) as caught:
        make()
    assert time.process_time() - begun < seconds
    message = str(caught.value)
    assert len(message) <= 300
    for word in words:
        assert word in message
    return message
