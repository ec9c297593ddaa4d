"""Estimators that simulate the robot with its controller."""
