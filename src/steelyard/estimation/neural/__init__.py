"""Networks as estimators: Adaline, Hopfield, Hopfield–Tank."""
