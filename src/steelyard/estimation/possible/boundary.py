"""Which links and bounds stand between the free fit and what is physically possible, and what each costs."""

from __future__ import annotations

import numpy as np

from steelyard.estimation.possible.formulate import Formulation
from steelyard.estimation.possible.interior import Solution, solve_interior
from steelyard.robot.spatial import Array

# A share of the cost below this (half a standard deviation, squared) is not worth naming.
_WORTH_NAMING = 0.25


def boundary_shares(made: Formulation, inside: Array) -> dict[str, float]:
    """What each link and bound adds to ‖R(Mθ) − y‖² (σ²) when the constraints alone decide; they sum to the whole.

    At the optimum z = Σ_i Bᵀ E_iᵀ Z_i with the multipliers Z_i ⪰ 0 of the links (and of the bounds), hence
    ‖z‖² = Σ_i ⟨Z_i, E_i B z⟩: the cost of impossibility splits exactly. `inside`: a point to start from.
    """
    program = made.program.bare(inside)
    found = solve_interior(program, first=0.1)
    return {name: share for name, share in _split(made, found).items() if share > _WORTH_NAMING}


def _split(made: Formulation, found: Solution) -> dict[str, float]:
    p = made.program.bare(found.x)
    B, _ = p.frame
    way = B @ (p.G @ found.x - p.g)
    out: dict[str, float] = {}
    for link, E, X in zip(made.base.robot.links, p.cones, p.matrices(found.x), strict=True):
        multiplier = found.barrier * (np.linalg.inv(X - p.margin * np.eye(4)) - np.eye(4))
        out[f"link '{link.name}'"] = float(multiplier.ravel() @ (E @ way))
    for name, row, constant in zip((*made.lines, *made.scalars), p.C, p.c, strict=True):
        multiplier = found.barrier * (1.0 / (float(row @ found.x) + constant) - 1.0)
        out[name] = out.get(name, 0.0) + float(multiplier * (row @ way))
    return out
