"""`nominal_prior`: what a robot's description says about its links, as knowledge before the data."""

from __future__ import annotations

import numpy as np

from steelyard.estimation.estimate import Prior
from steelyard.parameters.terms import Terms
from steelyard.robot.robot import Robot


def nominal_prior(robot: Robot, terms: Terms) -> Prior | None:
    """The description's inertias, link by link where they are given; nothing is known of the terms.

    A link that is stated to weigh nothing is known to: in a physically possible fit it stays light. One that is stated
    to be an impossible body gets a default body in its place there, and a note (`reference_bodies` does both). One of
    which nothing is stated is unknown; but where the joints on both its ends meet in one point, while other links are
    described, it is taken for what URDF writes joints of several axes with: a frame that weighs nothing.
    """
    count = 10 * len(robot.links) + len(terms)
    theta, known = np.zeros(count), np.zeros(count, dtype=bool)
    described = any(link.inertia is not None and link.inertia.any() for link in robot.links)
    for k, link in enumerate(robot.links):
        own = slice(10 * k, 10 * k + 10)
        if link.inertia is not None:
            theta[own] = link.inertia
            known[own] = True
        elif described and _has_no_length(robot, k):
            known[own] = True
    return Prior(theta, tuple(known.tolist())) if known.any() else None


def _has_no_length(robot: Robot, k: int) -> bool:
    """Whether a link carries others, all of them at its own joint."""
    carried = [link for link in robot.links if link.parent == k]
    return bool(carried) and all(not np.any(np.abs(link.translation) > 1e-9) for link in carried)
