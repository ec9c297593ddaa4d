"""Neural networks as estimators: Adaline, Hopfield, Hopfield–Tank."""
