"""Prediction of the torques of logged motions."""

from .predict import PredictedLog, Predictions, predict

__all__ = ["PredictedLog", "Predictions", "predict"]
