"""The robot in space with what was identified of its bodies, played along the logs that judge it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.identification.identification import Identification
from steelyard.identification.score_page import judged_scores
from steelyard.report.html import Section
from steelyard.report.scene import Body, scene_html
from steelyard.robot.shapes import inertia_ellipsoid, scene_of

_MOST_LOGS = 4


def robot_section(found: Identification) -> Section:
    """The robot of what was `found`, its bodies identified and nominal, moved by the logs that judge it."""
    motions = [(s.log, s.t, s.q) for s in judged_scores(found)[:_MOST_LOGS]]
    blocks = found.model.theta[: found.robot.inertial_count].reshape(-1, 10)
    errors = moment_errors(found)
    bodies = tuple(
        Body(
            k,
            inertia_ellipsoid(blocks[k], link.frame_rotation, link.frame_translation),
            inertia_ellipsoid(link.inertia, link.frame_rotation, link.frame_translation),
            errors[k],
        )
        for k, link in enumerate(found.robot.links)
    )
    scene = replace(scene_of(found.robot, motions), bodies=bodies)
    caption = (
        "Each link as an ellipsoid of even density with its mass and inertia; small: its centre of mass. Single bodies "
        "are as much the prior's as the data's; the colour says how well the motion shows what of a link can be seen: "
        "the error of the base parameters that are named after its moments, as a part of them; grey: there are none, "
        "it shows in sums with other links alone. Drag it, or use the arrow keys; point at a torque to see the posture."
    )
    return Section("The robot", scene_html(scene, f"{found.robot.name}, identified and nominal", caption))


def moment_errors(found: Identification) -> list[float | None]:
    """By link of what was `found`: the standard errors of the base parameters that are named after its moments, as a
    part of these, both as vectors; first moments count by the robot's size. None: there are none."""
    robot, base = found.robot, found.base
    size = max(sum(float(np.linalg.norm(link.translation)) for link in robot.links) / len(robot.links), 1e-3)
    values, errors = found.estimate.beta, found.estimate.standard_errors
    out: list[float | None] = []
    for link in range(len(robot.links)):
        own = [k for k, column in enumerate(base.independent) if column // 10 == link and column % 10 > 0]
        own = [k for k in own if base.independent[k] < robot.inertial_count]
        weight = np.array([size if base.independent[k] % 10 < 4 else 1.0 for k in own])
        whole = float(np.linalg.norm(weight * values[own])) if own else 0.0
        out.append(float(np.linalg.norm(weight * errors[own])) / whole if whole > 0.0 else None)
    return out
