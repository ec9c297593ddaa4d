"""Fits with physically possible results."""
