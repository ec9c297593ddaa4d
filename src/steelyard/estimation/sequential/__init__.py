"""Sequential identification: movement after movement, each for a part of the parameters."""
