"""Outputs, one per file: see `steelyard.watch.output`."""
