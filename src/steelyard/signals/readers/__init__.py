"""Readers of log formats, one file per family; `steelyard.signals.table.READERS` lists them."""
