"""Monitors, one per file: see `steelyard.watch.monitor_base`."""
