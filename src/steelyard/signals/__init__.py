"""Logs: what they hold, how they are read, and how their clocks are mended."""
