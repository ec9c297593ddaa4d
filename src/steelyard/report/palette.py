"""Colours that everybody can tell apart (Okabe & Ito 2008, "Color universal design"), on light and on dark."""

from __future__ import annotations

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"

# In the order in which series take them; yellow, too pale for lines on white, is left out.
SERIES = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, GREY)

# What the same thing looks like in every figure.
MEASURED, PREDICTED, RESIDUAL, BEFORE, AFTER = GREY, VERMILLION, BLUE, GREY, BLUE
