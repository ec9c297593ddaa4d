"""How good a model is, on data that was not used: scores, hold-outs, verdicts."""
