"""Networks as estimators: Adaline, Hopfield, Hopfield–Tank."""

from steelyard.estimation.neural.adaline import Adaline
from steelyard.estimation.neural.hopfield import Hopfield, HopfieldTank

__all__ = ["Adaline", "Hopfield", "HopfieldTank"]
