"""The arm as a stick figure that moves: one line from joint to joint, with a slider for the time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.report.palette import BLUE, GREY
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

# Enough to see the motion flow, few enough for a file of some ten kilobytes.
FRAMES = 60


def skeleton(robot: Robot, t: ArrayLike, q: ArrayLike) -> Any:
    """Frames over the whole motion; joints `(samples, joints)`."""
    from plotly.graph_objects import Figure, Frame, Scatter3d

    time, table = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
    keep = np.unique(np.linspace(0, len(time) - 1, FRAMES).astype(int))
    _, origins = link_poses(robot, table)
    shapes = [_sticks(robot, origins[k]) for k in keep]
    tip = origins[:, -1]
    thin = np.unique(np.linspace(0, len(time) - 1, 300).astype(int))
    way = Scatter3d(
        x=_round(tip[thin, 0]), y=_round(tip[thin, 1]), z=_round(tip[thin, 2]), mode="lines", name="way",
        line={"color": GREY, "width": 2}, hoverinfo="skip",
    )  # fmt: skip

    def arm(shape: Array) -> Any:
        return Scatter3d(
            x=_round(shape[:, 0]), y=_round(shape[:, 1]), z=_round(shape[:, 2]), mode="lines+markers", name="arm",
            line={"color": BLUE, "width": 9}, marker={"size": 4, "color": BLUE}, connectgaps=False, hoverinfo="skip",
        )  # fmt: skip

    labels = [f"{time[k]:.2f}" for k in keep]
    frames = [Frame(data=[arm(s)], traces=[1], name=label) for s, label in zip(shapes, labels, strict=True)]
    figure = Figure(data=[way, arm(shapes[0])], frames=frames)
    whole = np.concatenate([s[~np.isnan(s).any(axis=1)] for s in shapes])
    _arrange(figure, labels, whole)
    return figure


def _sticks(robot: Robot, origins: Array) -> Array:
    """From every joint back to the one that carries it, with gaps between branches; from the base to the first."""
    points: list[Array] = [np.zeros(3)]
    gap = np.full(3, np.nan)
    last = -1
    for k, link in enumerate(robot.links):
        if link.parent != last:
            points += [gap, np.zeros(3) if link.parent < 0 else origins[link.parent]]
        points.append(origins[k])
        last = k
    return np.array(points)


def _round(values: Array) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 4) for v in values]


def _arrange(figure: Any, labels: list[str], whole: Array) -> None:
    low, high = whole.min(axis=0), whole.max(axis=0)
    middle, half = 0.5 * (low + high), 0.55 * float(np.max(high - low)) + 1e-3
    axes = {
        f"{x}axis": {"range": [middle[k] - half, middle[k] + half], "title": {"text": f"{x} [m]"}, "nticks": 5}
        for k, x in enumerate("xyz")
    }
    quick = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    play = {"fromcurrent": True, "frame": {"duration": 100, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": x, "method": "animate", "args": [[x], quick]} for x in labels]
    figure.update_layout(
        height=560,
        template=None,
        margin={"l": 0, "r": 0, "t": 44, "b": 70},
        scene={**axes, "aspectmode": "cube"},
        showlegend=False,
        sliders=[_slider(steps)],
        updatemenus=[_buttons(play, quick)],
    )


def _slider(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Below the arm; its steps carry no labels, the current time does."""
    shown = {"prefix": "time [s] ", "font": {"size": 12}}
    return {"steps": steps, "currentvalue": shown, "x": 0.02, "len": 0.96, "ticklen": 0, "font": {"size": 1}}


def _buttons(play: dict[str, Any], pause: dict[str, Any]) -> dict[str, Any]:
    """Above the arm, on the left."""
    made = [
        {"label": "▶ play", "method": "animate", "args": [None, play]},
        {"label": "❚❚ pause", "method": "animate", "args": [[None], pause]},
    ]
    place = {"x": 0.0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "direction": "left"}
    return {"type": "buttons", "showactive": False, "buttons": made, "pad": {"l": 4, "b": 6}, **place}
