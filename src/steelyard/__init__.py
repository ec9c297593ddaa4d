"""Steelyard: find the true dynamic model of a robot from its own motion."""
