"""What the stage *Use* asks the process aside: formats and controllers that there are, frames, figures."""

from __future__ import annotations

from steelyard.errors import SteelyardError
from steelyard.project import Project
from steelyard.report.elements import figure_html


def export_formats() -> list[tuple[str, str, str]]:
    """Name and description of every format that models are written as, and what is lacking to write it."""
    from steelyard.export import MODEL_FORMATS

    return [(name, MODEL_FORMATS[name].description, MODEL_FORMATS[name].lacking()) for name in MODEL_FORMATS]


def load_choices(file: str) -> dict[str, list[tuple[str, str]]]:
    """For the robot of the project `file`: `frames` in which a load may be described, and `controllers` that loads are
    written for, names and words."""
    from steelyard.payload import PAYLOAD_TARGETS

    try:
        robot = Project.load(file).load_robot()
        named = [*robot.link_names, *(name for name in robot.frames if name not in robot.link_names)]
    except SteelyardError:
        named = []
    controllers = [(name, PAYLOAD_TARGETS[name].title) for name in PAYLOAD_TARGETS]
    return {"frames": [(name, name) for name in named], "controllers": controllers}


def friction_seen(file: str, run: str) -> str:
    """The figure of the `run` of friction, of the robot of the project `file`."""
    from steelyard.friction.page import saved_curves_figure

    figure = saved_curves_figure(Project.load(file).load_robot(), run)
    return figure_html(figure, "Friction over velocity", "Points with 95 % intervals, and the law through them.")
