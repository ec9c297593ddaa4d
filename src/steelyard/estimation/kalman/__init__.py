"""Filters over state and parameters together: extended, unscented, cubature, central-difference, particle."""
