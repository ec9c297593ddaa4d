"""Filters over state and parameters: extended, unscented, cubature, central-difference, particle."""
