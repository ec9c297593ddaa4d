"""Numbers for people: few digits, no more than the error bar allows, and no exponent where plain digits do."""

from __future__ import annotations

import math
from dataclasses import dataclass

# From here on digits are harder to count than an exponent is to read.
_LONG = 1e7
# Where there is no number.
DASH = "–"
# In the place of a coefficient whose fit has a sign that no robot has: a friction that would drive the joint.
NO_SIGN = "not identifiable (sign impossible)"
WHY_NO_SIGN = (
    "Where a coefficient is not identifiable (sign impossible), the fit that knows nothing of physics gives it a sign "
    "that no friction and no rotor has: the motion does not show it, or something else is in it."
)


def number(value: float | None, digits: int = 4) -> str:
    """A `value` in few `digits`; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value + 0.0:.{digits}g}"  # + 0.0 turns -0 into 0
    return f"{float(text):.0f}" if "e" in text and 1.0 <= abs(value) < _LONG else text


def percent(share: float | None, digits: int = 2) -> str:
    """So many percent: `share` in percent, in few `digits`."""
    return f"{number(share, digits)} %"


def rounded_to(value: float, error: float) -> float:
    """A `value` rounded_to where the second digit of its `error` stands; as it is where there is none."""
    value, error = float(value), abs(float(error))
    if not (math.isfinite(value) and math.isfinite(error)) or error < 1e-300:
        return value
    return round(value, 1 - math.floor(math.log10(error)))


@dataclass(frozen=True)
class Known:
    """A `value` that is known to within an `error`; as text it has as many digits as that allows."""

    value: float
    error: float

    def __str__(self) -> str:
        value, error = float(self.value), abs(float(self.error))
        if not (math.isfinite(value) and 1e-9 < error < _LONG and abs(value) < _LONG):
            return number(value)
        places = max(0, 1 - math.floor(math.log10(error)))
        return f"{rounded_to(value, error) + 0.0:.{places}f}"


def with_error(value: float, error: float) -> str:
    """A `value` and its `error`, with as many digits as that allows: 12.30 ± 0.45."""
    return f"{Known(value, error)} ± {number(abs(float(error)), 2)}"


def with_interval(value: float, standard_error: float) -> str:
    """A `value` and half its 95 % interval, from its `standard_error`."""
    return with_error(value, 1.96 * float(standard_error))
