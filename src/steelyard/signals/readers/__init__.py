"""One file per family of log formats; `steelyard.signals.table.READERS` finds them all."""
