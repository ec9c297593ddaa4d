"""Recursive least squares: sample by sample, live or from logs."""
