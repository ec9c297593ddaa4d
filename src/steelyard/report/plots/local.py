"""Figures of local models: regions in space, errors of many motions, torques with their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.local.bank import LocalModel
from steelyard.local.motions import looks
from steelyard.local.region import CartesianRegion
from steelyard.local.validate import Example, Validation
from steelyard.report.plots.figure import GREY, MEASURED, PREDICTED, SERIES, Figure, Words
from steelyard.report.plots.series import decimate, share
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot


def regions_in_space(robot: Robot, models: Sequence[LocalModel]) -> Figure:
    """Boxes with the way of the point through them and the arm in one posture of each; joint boxes show their ways."""
    figure = Figure(560, flat=False)
    for k, local in enumerate(models):
        colour, region = SERIES[k % len(SERIES)], local.region
        tip = region if isinstance(region, CartesianRegion) else CartesianRegion("tip", np.zeros(3), np.ones(3))
        named: Words = {"legendgroup": local.name, "line": {"color": colour, "width": 3}, "mode": "lines"}
        if isinstance(region, CartesianRegion):
            x, y, z = _edges(region.lower, region.upper)
            figure.add("scatter3d", x=x, y=y, z=z, name=f"region {local.name}", hoverinfo="name", **named)
        if local.motion is None:
            continue
        q = local.motion.sample(looks(local.motion)[::5])[0]
        x, y, z = tip.coordinates(robot, q).T
        shown = not isinstance(region, CartesianRegion)
        thin = {**named, "line": {"color": colour, "width": 1.5}}
        figure.add(
            "scatter3d", x=x, y=y, z=z, name=f"motion in {local.name}", showlegend=shown, hoverinfo="name", **thin
        )
        arm = np.vstack([np.zeros(3), link_poses(robot, q[0])[1], tip.coordinates(robot, q[:1])])
        x, y, z = arm.T
        grey = {**named, "line": {"color": GREY, "width": 5}}
        figure.add("scatter3d", x=x, y=y, z=z, name="arm", showlegend=False, hoverinfo="skip", **grey)
    axes = {f"{a}axis": {"title": {"text": f"{a} [m]"}, "backgroundcolor": "rgba(0,0,0,0)"} for a in "xyz"}
    figure.layout |= {"scene": {**axes, "aspectmode": "data"}, "margin": {"l": 0, "r": 0, "t": 48, "b": 0}}
    return figure


def _edges(lower: Array, upper: Array) -> tuple[list[float | None], ...]:
    """The twelve edges of a box as one broken line."""
    corners = list(product((0, 1), repeat=3))
    out: tuple[list[float | None], ...] = ([], [], [])
    for a, b in product(corners, corners):
        if a < b and sum(i != j for i, j in zip(a, b, strict=True)) == 1:
            for axis in range(3):
                ends = [(lower, upper)[corner[axis]][axis] for corner in (a, b)]
                out[axis].extend([float(ends[0]), float(ends[1]), None])
    return out


def error_distributions(found: Validation, models: Mapping[str, Sequence[str]]) -> Figure:
    """One panel per region: errors of all motions in percent of nominal torque, joint by joint; `models` by region."""
    figure = Figure.panels([f"region {r.region}" for r in found.regions], height=260)
    joints = list(found.robot.joint_names)
    for row, r in enumerate(found.regions, start=1):
        for k, model in enumerate(models[r.region]):
            values = found.percent(model, r.region)
            name = "own model" if model == r.region else model
            figure.add(
                "box",
                row,
                x=np.repeat(joints, len(values)),
                y=values.T.ravel(),
                name=name,
                offsetgroup=name,
                marker={"color": SERIES[k % len(SERIES)]},
                line={"width": 1.2},
                boxpoints="outliers",
            )
        figure.y_axis(row, "error [% of nominal]", rangemode="tozero")
    figure.layout["boxmode"] = "group"
    return figure


def torque_band(example: Example, joints: Sequence[str], unit: Sequence[str], measured: str = "measured") -> Figure:
    """Measured and predicted torque with the ±σ band about the prediction."""
    figure = Figure.panels(list(joints))
    most = share(4 * len(joints))
    for k in range(len(joints)):
        keep = decimate(example.measured[:, k], most)
        t = example.t[keep]
        low, high = (example.predicted[keep, k] + s * example.band[keep, k] for s in (-1.0, 1.0))
        edge = {"hoverinfo": "skip", "legendgroup": "band"}
        figure.line(k + 1, t, low, None, PREDICTED, 0, showlegend=False, **edge)
        figure.line(k + 1, t, high, "±σ band", PREDICTED, 0, fill="tonexty", fillcolor="rgba(213,94,0,0.22)", **edge)
        figure.line(k + 1, t, example.measured[keep, k], measured, MEASURED, 1.0)
        figure.line(k + 1, t, example.predicted[keep, k], "predicted", PREDICTED, 1.4)
        figure.y_axis(k + 1, f"torque [{unit[k]}]")
    figure.x_axis(len(joints), "time [s]")
    return figure
