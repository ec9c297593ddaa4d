"""Formats numbers for readers: few digits, limited by the error bar, and no exponent if possible."""

from __future__ import annotations

import math
from dataclasses import dataclass

from steelyard.ground.grades import HALF_WIDTH_95

# Larger numbers get an exponent.
_LONG = 1e7
# Shown for a missing number.
DASH = "–"
# Shown for a coefficient with an impossible sign, such as a friction that would drive the joint.
NO_SIGN = "not identifiable (sign impossible)"
WHY_NO_SIGN = (
    "A coefficient marked 'not identifiable (sign impossible)' gets a sign from the unconstrained fit that no friction "
    "and no rotor can have: the motion does not excite it, or another effect is mixed into it."
)


def number(value: float | None, digits: int = 4) -> str:
    """Format a number; a missing or infinite one becomes a dash.

    Args:
        value: The number.
        digits: Number of significant digits.
    """
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{value + 0.0:.{digits}g}"  # + 0.0 turns -0 into 0
    return f"{float(text):.0f}" if "e" in text and 1.0 <= abs(value) < _LONG else text


def percent(share: float | None, digits: int = 2) -> str:
    """Format a percentage.

    Args:
        share: The number [%].
        digits: Number of significant digits.
    """
    return f"{number(share, digits)} %"


def rounded_to(value: float, error: float) -> float:
    """Round a value to the second significant digit of its error; without a finite error it stays unchanged.

    Args:
        value: The number.
        error: Standard error of the number, in the same unit.
    """
    value, error = float(value), abs(float(error))
    if not (math.isfinite(value) and math.isfinite(error)) or error < 1e-300:
        return value
    return round(value, 1 - math.floor(math.log10(error)))


@dataclass(frozen=True)
class Known:
    """A number with its error; its text has only significant digits.

    Args:
        value: The number.
        error: Standard error of the number, in the same unit.
    """

    value: float
    error: float

    def __str__(self) -> str:
        value, error = float(self.value), abs(float(self.error))
        if not (math.isfinite(value) and 1e-9 < error < _LONG and abs(value) < _LONG):
            return number(value)
        places = max(0, 1 - math.floor(math.log10(error)))
        return f"{rounded_to(value, error) + 0.0:.{places}f}"


def with_error(value: float, error: float) -> str:
    """Format a value and its error with significant digits: 12.30 ± 0.45.

    Args:
        value: The number.
        error: Standard error of the number, in the same unit.
    """
    return f"{Known(value, error)} ± {number(abs(float(error)), 2)}"


def with_interval(value: float, standard_error: float) -> str:
    """Format a value and half the width of its 95 % interval.

    Args:
        value: The number.
        standard_error: Standard error of the number.
    """
    return with_error(value, HALF_WIDTH_95 * float(standard_error))
