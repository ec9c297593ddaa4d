"""What a refusal of hostile or odd input must be: one short sentence, at once, that names what is wrong."""

import contextlib
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from steelyard.errors import SteelyardError


@contextlib.contextmanager
def within(most_bytes: int | None) -> Iterator[None]:
    """No more memory than that is asked for meanwhile; None: nobody looks, which is quicker."""
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
