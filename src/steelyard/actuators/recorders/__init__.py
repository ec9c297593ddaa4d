"""Formats of command logs, one a file."""
