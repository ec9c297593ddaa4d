"""Estimators that simulate the robot under its own controller."""
