"""What a fit takes for granted, and what the logs say of it: zeros, scales, clock, gravity, description, drift."""

from .keep import keep_ledger
from .ledger import Entry, Ledger
from .suspect import Suspect

__all__ = ["Entry", "Ledger", "Suspect", "keep_ledger"]
