"""Kinds of measurements, one class each."""
