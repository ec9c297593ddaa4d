"""What a fit takes for granted, and what the logs say of it: zeros, scales, clock, gravity, description, drift."""

from .examine import examine_assumptions
from .ledger import Entry, Ledger
from .suspect import Suspect

__all__ = [
    "Entry", "Ledger", "Suspect", "examine_assumptions",
]  # fmt: skip
