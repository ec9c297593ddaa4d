"""Figures of local models: regions in space, errors of many motions, torques with their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.local.bank import LocalModel
from steelyard.local.motions import looks
from steelyard.local.region import CartesianRegion
from steelyard.local.validate import Example, Validation
from steelyard.report.decimate import decimate, share
from steelyard.report.palette import MEASURED, PREDICTED, SERIES
from steelyard.report.plots.figure import arrange, panels
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot


def regions_in_space(robot: Robot, models: Sequence[LocalModel]) -> Any:
    """Boxes with the way of the point through them and the arm in one posture of each; joint boxes show their ways."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for k, local in enumerate(models):
        colour, region = SERIES[k % len(SERIES)], local.region
        tip = region if isinstance(region, CartesianRegion) else CartesianRegion("tip", np.zeros(3), np.ones(3))
        named = {"legendgroup": local.name, "line": {"color": colour, "width": 3}, "mode": "lines"}
        if isinstance(region, CartesianRegion):
            x, y, z = _edges(region.lower, region.upper)
            figure.add_scatter3d(x=x, y=y, z=z, name=f"region {local.name}", hoverinfo="name", **named)
        if local.motion is None:
            continue
        q = local.motion.sample(looks(local.motion)[::5])[0]
        x, y, z = tip.coordinates(robot, q).T
        shown = not isinstance(region, CartesianRegion)
        thin = {**named, "line": {"color": colour, "width": 1.5}}
        figure.add_scatter3d(x=x, y=y, z=z, name=f"motion in {local.name}", showlegend=shown, hoverinfo="name", **thin)
        arm = np.vstack([np.zeros(3), link_poses(robot, q[0])[1], tip.coordinates(robot, q[:1])])
        x, y, z = arm.T
        grey = {**named, "line": {"color": "#8C8C8C", "width": 5}}
        figure.add_scatter3d(x=x, y=y, z=z, name="arm", showlegend=False, hoverinfo="skip", **grey)
    arrange(figure, 560)
    axes = {f"{a}axis": {"title": {"text": f"{a} [m]"}, "backgroundcolor": "rgba(0,0,0,0)"} for a in "xyz"}
    figure.update_layout(scene={**axes, "aspectmode": "data"}, margin={"l": 0, "r": 0, "t": 48, "b": 0})
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


def error_distributions(found: Validation, models: Mapping[str, Sequence[str]]) -> Any:
    """One panel per region: errors of all motions in percent of nominal torque, joint by joint; `models` by region."""
    figure = panels([f"region {r.region}" for r in found.regions], height=260)
    joints = list(found.robot.joint_names)
    seen: set[str] = set()
    for row, r in enumerate(found.regions, start=1):
        for k, model in enumerate(models[r.region]):
            values = found.percent(model, r.region)
            name = "own model" if model == r.region else model
            figure.add_box(
                x=np.repeat(joints, len(values)),
                y=values.T.ravel(),
                name=name,
                legendgroup=name,
                offsetgroup=name,
                showlegend=name not in seen,
                marker={"color": SERIES[k % len(SERIES)]},
                line={"width": 1.2},
                boxpoints="outliers",
                row=row,
                col=1,
            )
            seen.add(name)
        figure.update_yaxes(title_text="error [% of nominal]", rangemode="tozero", row=row, col=1)
    figure.update_layout(boxmode="group")
    return figure


def torque_band(example: Example, joints: Sequence[str], unit: Sequence[str], measured: str = "measured") -> Any:
    """Measured and predicted torque with the ±σ band about the prediction."""
    figure = panels(list(joints))
    most = share(4 * len(joints))
    for k in range(len(joints)):
        keep = decimate(example.measured[:, k], most)
        t = example.t[keep]
        low, high = (example.predicted[keep, k] + s * example.band[keep, k] for s in (-1.0, 1.0))
        fill = {
            "mode": "lines",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "legendgroup": "band",
            "row": k + 1,
            "col": 1,
        }
        figure.add_scatter(x=t, y=low, showlegend=False, **fill)
        figure.add_scatter(
            x=t, y=high, name="±σ band", fill="tonexty", fillcolor="rgba(213,94,0,0.22)", showlegend=k == 0, **fill
        )
        for name, y, colour, width in (
            (measured, example.measured, MEASURED, 1.0),
            ("predicted", example.predicted, PREDICTED, 1.4),
        ):
            figure.add_scatter(
                x=t,
                y=y[keep, k],
                mode="lines",
                name=name,
                legendgroup=name,
                showlegend=k == 0,
                line={"color": colour, "width": width},
                row=k + 1,
                col=1,
            )
        figure.update_yaxes(title_text=f"torque [{unit[k]}]", row=k + 1, col=1)
    figure.update_xaxes(title_text="time [s]", row=len(joints), col=1)
    return figure
