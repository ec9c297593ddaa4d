"""A designed motion: joints and torques beside their limits, where the tool goes, and the arm as it moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.report.plots.figure import BLUE, GREEN, GREY, ORANGE, VERMILLION, Figure, Words
from steelyard.report.plots.series import by_joint, decimate, in_steps, share, units
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

# Enough to see the motion flow, few enough for a file of some ten kilobytes.
FRAMES = 60


def joint_motion(
    t: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, limits: Any, joints: Sequence[str]
) -> Figure:
    """One panel per joint: position, velocity and acceleration as shares of their limits, so that one scale serves."""
    n = len(joints)
    half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
    scaled = {
        "position": ((by_joint("q", q, n) - middle) / half, BLUE),
        "velocity": (by_joint("dq", dq, n) / limits.dq, VERMILLION),
        "acceleration": (by_joint("ddq", ddq, n) / limits.ddq, GREEN),
    }
    series = {name: (100.0 * np.nan_to_num(table), colour) for name, (table, colour) in scaled.items()}
    return _over_time(t, series, joints, ["% of limit"] * n, ["%"] * n, np.full(n, 100.0))


def torque_limits(
    t: ArrayLike, tau: ArrayLike, limits: Array, joints: Sequence[str], unit: Sequence[str] | str
) -> Figure:
    """One panel per joint: the torque that the nominal model needs, and what the drive allows."""
    named = units(unit, len(joints))
    series = {"torque": (by_joint("tau", tau, len(joints)), BLUE)}
    return _over_time(t, series, joints, [f"torque [{u}]" for u in named], named, limits)


def _over_time(
    t: ArrayLike,
    series: dict[str, tuple[Array, str]],
    joints: Sequence[str],
    titles: Sequence[str],
    unit: Sequence[str],
    limits: Array,
) -> Figure:
    """One panel per joint: series with their colours, and limits where they are finite."""
    time, n = np.asarray(t, dtype=float), len(joints)
    figure = Figure.panels(joints, height=150)
    for k in range(n):
        hover = f"%{{y:.4g}} {unit[k]} at %{{x:.3f}} s"
        for name, (table, colour) in series.items():
            keep = decimate(table[:, k], share(len(series) * n))
            figure.line(k + 1, time[keep], table[keep, k], name, colour, 1.3, hovertemplate=hover)
        for bound in (-limits[k], limits[k]):
            if np.isfinite(bound):
                figure.bound(k + 1, float(bound))
        figure.y_axis(k + 1, titles[k])
    figure.x_axis(n, "time [s]")
    return figure


def workspace_coverage(places: ArrayLike) -> Figure:
    """The way of the last joint's origin `(samples, 3)`, from above and from the side."""
    p = np.asarray(places, dtype=float)
    figure = Figure.panels(["from above", "from the side"], shared=False, height=320)
    for row, (a, b) in enumerate(((0, 1), (0, 2)), start=1):
        hover = "%{x:.3f}, %{y:.3f} m"
        figure.line(row, p[:, a], p[:, b], "way of the last link", BLUE, 1.2, hovertemplate=hover)
        start = {"x": p[:1, a], "y": p[:1, b], "marker": {"color": ORANGE, "size": 9}}
        figure.add("scatter", row, mode="markers", name="start", **start)
        figure.x_axis(row, "x [m]")
        figure.y_axis(row, f"{'xyz'[b]} [m]", scaleanchor="x" if row == 1 else f"x{row}")
    return figure


def search_history(history: Sequence[tuple[int, float]], label: str) -> Figure:
    """The best value so far over the evaluations that it took."""
    figure = Figure(320)
    n, value = [h[0] for h in history], [h[1] for h in history]
    line = {"color": BLUE, "shape": "hv"}
    figure.add("scatter", x=n, y=value, mode="lines+markers", line=line, name="best so far", showlegend=None)
    wide = min(value) > 0.0 and max(value) > 5.0 * min(value)
    figure.y_axis(title=label, type="log" if wide else None)
    figure.x_axis(title="evaluations")
    return figure


def skeleton(robot: Robot, t: ArrayLike, q: ArrayLike) -> Figure:
    """The arm as a stick figure that moves, one line from joint to joint, with a slider for the time."""
    time, table = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
    keep = np.unique(np.linspace(0, len(time) - 1, FRAMES).astype(int))
    _, origins = link_poses(robot, table)
    shapes = [_sticks(robot, origins[k]) for k in keep]
    thin = np.unique(np.linspace(0, len(time) - 1, 300).astype(int))
    figure = Figure(560, flat=False)
    way: Words = {"mode": "lines", "name": "way", "line": {"color": GREY, "width": 2}}
    figure.add("scatter3d", **_points(origins[thin, -1]), **way, hoverinfo="skip")
    blue = {"line": {"color": BLUE, "width": 9}, "marker": {"size": 4, "color": BLUE}}
    arm: Words = {"mode": "lines+markers", "name": "arm", "connectgaps": False, "hoverinfo": "skip", **blue}
    figure.add("scatter3d", **_points(shapes[0]), **arm)
    labels = [f"{time[k]:.2f}" for k in keep]
    figure.frames = [
        {"name": label, "data": [{"type": "scatter3d", **_points(shape), **arm}], "traces": [1]}
        for shape, label in zip(shapes, labels, strict=True)
    ]
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


def _points(places: Array) -> Words:
    return {axis: in_steps(places[:, k]) for k, axis in enumerate("xyz")}


def _arrange(figure: Figure, labels: list[str], whole: Array) -> None:
    low, high = whole.min(axis=0), whole.max(axis=0)
    middle, half = 0.5 * (low + high), 0.55 * float(np.max(high - low)) + 1e-3
    axes = {
        f"{x}axis": {"range": [middle[k] - half, middle[k] + half], "title": {"text": f"{x} [m]"}, "nticks": 5}
        for k, x in enumerate("xyz")
    }
    quick = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    play = {"fromcurrent": True, "frame": {"duration": 100, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": x, "method": "animate", "args": [[x], quick]} for x in labels]
    figure.layout |= {
        "margin": {"l": 0, "r": 0, "t": 44, "b": 70},
        "scene": {**axes, "aspectmode": "cube"},
        "showlegend": False,
        "sliders": [_slider(steps)],
        "updatemenus": [_buttons(play, quick)],
    }


def _slider(steps: list[Words]) -> Words:
    """Below the arm; its steps carry no labels, the current time does."""
    shown = {"prefix": "time [s] ", "font": {"size": 12}}
    return {"steps": steps, "currentvalue": shown, "x": 0.02, "len": 0.96, "ticklen": 0, "font": {"size": 1}}


def _buttons(play: Words, pause: Words) -> Words:
    """Above the arm, on the left."""
    made = [
        {"label": "▶ play", "method": "animate", "args": [None, play]},
        {"label": "❚❚ pause", "method": "animate", "args": [[None], pause]},
    ]
    place = {"x": 0.0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "direction": "left"}
    return {"type": "buttons", "showactive": False, "buttons": made, "pad": {"l": 4, "b": 6}, **place}
