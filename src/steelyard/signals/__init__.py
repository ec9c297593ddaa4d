"""Logs: signals, formats, readers, mappings, and the repair of their clocks."""
