"""Prediction of the torques of logged motions."""

from ._band_of import torque_band_of, torque_delay_of
from .predict import PredictedLog, Predictions, predict

__all__ = [
    "PredictedLog", "Predictions", "predict", "torque_band_of", "torque_delay_of",
]  # fmt: skip
