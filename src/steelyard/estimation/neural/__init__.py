"""Networks as estimators: Adaline, Hopfield, Hopfield–Tank."""

from steelyard.estimation.neural.adaline import Adaline
from steelyard.estimation.neural.hopfield import Hopfield
from steelyard.estimation.neural.hopfield_tank import HopfieldTank

__all__ = ["Adaline", "Hopfield", "HopfieldTank"]
