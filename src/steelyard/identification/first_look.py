"""First section of a report: torque measured and predicted with bands, beside the robot and its identified bodies in
3-D; then the verdict's reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.identification.identification import Identification
from steelyard.identification.score_page import shown_scores, torques_html
from steelyard.report.elements import Html, text
from steelyard.report.html import Section
from steelyard.report.scene import Body, scene_html
from steelyard.robot.shapes import inertia_ellipsoid, scene_of

_MOST_LOGS = 4


def robot_html(result: Identification) -> Html:
    """Build the 3-D view with identified and nominal bodies of `result`, animated by its validation logs."""
    motions = [(s.log, s.t, s.q) for s in shown_scores(result)[:_MOST_LOGS]]
    blocks = result.model.theta[: result.robot.inertial_count].reshape(-1, 10)
    errors = moment_errors(result)
    bodies = tuple(
        Body(
            k,
            inertia_ellipsoid(blocks[k], link.frame_rotation, link.frame_translation),
            inertia_ellipsoid(link.inertia, link.frame_rotation, link.frame_translation),
            errors[k],
        )
        for k, link in enumerate(result.robot.links)
    )
    scene = replace(scene_of(result.robot, motions), bodies=bodies)
    caption = (
        "Ellipsoids have the masses and inertias of the links, which depend on the prior as much as on the data; dots "
        "are centres of mass. The colour shows the relative error of the base parameters named after a link. Grey: the "
        "link appears only in sums with others. Point at a torque curve to see the posture."
    )
    return scene_html(scene, f"{result.robot.name}, identified and nominal", caption)


def moment_errors(result: Identification) -> list[float | None]:
    """Compute for each link of `result` the relative error of the base parameters named after its moments.

    The error is the norm of the standard errors over the norm of the values. First moments are scaled by the robot's
    mean link length. None marks links without such parameters.
    """
    robot, base = result.robot, result.base
    length = max(sum(float(np.linalg.norm(link.translation)) for link in robot.links) / len(robot.links), 1e-3)
    values, errors = result.estimate.beta, result.estimate.standard_errors
    out: list[float | None] = []
    for link in range(len(robot.links)):
        own = [k for k, column in enumerate(base.independent) if column // 10 == link and column % 10 > 0]
        own = [k for k in own if base.independent[k] < robot.inertial_count]
        weight = np.array([length if base.independent[k] % 10 < 4 else 1.0 for k in own])
        whole = float(np.linalg.norm(weight * values[own])) if own else 0.0
        out.append(float(np.linalg.norm(weight * errors[own])) / whole if whole > 0.0 else None)
    return out


def first_look_section(result: Identification) -> Section:
    """Build the section with the torques of `result`, joint by joint, and its robot."""
    return Section(
        "Torque and robot",
        Html(f'<div class="first-look"><div>{torques_html(result)}</div>{robot_html(result)}</div>'),
    )


def reasons_section(reasons: Sequence[str]) -> Section | None:
    """List the `reasons` of a verdict; None without any."""
    return Section("Reasons for the verdict", _list(reasons)) if reasons else None


def remarks_section(remarks: Sequence[str]) -> Section | None:
    """List the `remarks` of a verdict; None without any."""
    return Section("Remarks on the model", _list(remarks)) if remarks else None


def _list(sentences: Sequence[str]) -> Html:
    return Html(f"<ul>{''.join(f'<li>{text(sentence)}</li>' for sentence in sentences)}</ul>")
