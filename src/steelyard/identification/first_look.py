"""First section of a report: measured and predicted torque with bands next to the robot; then the verdict's reasons."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.identification.identification import Identification
from steelyard.identification.robot_page import robot_html
from steelyard.identification.score_page import torques_html
from steelyard.report.elements import Html, text
from steelyard.report.html import Section


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
