"""Sequential identification: one movement after the other, each for a part of the parameters."""
