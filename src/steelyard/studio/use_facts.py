"""Functions of the stage *Use* for the helper process: export formats, frames, controllers and the friction figure."""

from __future__ import annotations

from steelyard.errors import SteelyardError
from steelyard.project import Project
from steelyard.report.elements import figure_html


def export_formats() -> list[tuple[str, str, str]]:
    """List the export formats: name, description, and what is missing to write it."""
    from steelyard.export import MODEL_FORMATS

    return [(name, MODEL_FORMATS[name].description, MODEL_FORMATS[name].lacking()) for name in MODEL_FORMATS]


def load_choices(file: str) -> dict[str, list[tuple[str, str]]]:
    """List `frames` and `controllers` for a payload of the robot of the project `file`: name and title."""
    from steelyard.payload import PAYLOAD_TARGETS

    try:
        robot = Project.load(file).load_robot()
        frames = [*robot.link_names, *(name for name in robot.frames if name not in robot.link_names)]
    except SteelyardError:
        frames = []
    controllers = [(name, PAYLOAD_TARGETS[name].title) for name in PAYLOAD_TARGETS]
    return {"frames": [(name, name) for name in frames], "controllers": controllers}


def friction_figure_html(file: str, run: str) -> str:
    """Render the friction curves of a run.

    Args:
        file: Path of the project file.
        run: Folder of the run.
    """
    from steelyard.friction.page import saved_curves_figure

    figure = saved_curves_figure(Project.load(file).load_robot(), run)
    return figure_html(figure, "Friction over velocity", "Points with 95 % intervals, and the fitted friction law.")
