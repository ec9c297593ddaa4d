"""Figures of lines: colours by name, few points, extreme values preserved."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import ShapeError
from steelyard.report.plots.lines import Boxes, Line, Panel, joint_panels, line_panels


def test_lines_of_one_name_share_colour_and_legend() -> None:
    t = np.linspace(0.0, 1.0, 50)
    signals = {"measured": np.outer(t, [1.0, 2.0]), "simulated": np.outer(t, [1.1, 2.1])}
    figure = line_panels(joint_panels(("a", "b"), t, signals, "rad", dashed=("simulated",)))
    traces = figure.data
    assert [trace["name"] for trace in traces] == ["measured", "simulated"] * 2
    assert [trace["showlegend"] for trace in traces] == [True, True, False, False]
    assert traces[0]["line"]["color"] == traces[2]["line"]["color"] != traces[1]["line"]["color"]
    assert [trace["line"]["dash"] for trace in traces] == ["solid", "dash"] * 2


def test_a_long_line_keeps_its_spike() -> None:
    y = np.zeros(100_000)
    y[54_321] = 7.0
    line = Line.of("torque", np.arange(y.size), y)
    assert len(line.x) <= 800
    assert max(line.y) == 7.0
    assert line.x[line.y.index(7.0)] == 54_321


def test_a_panel_can_be_logarithmic_or_have_a_range() -> None:
    line = Line.of("x", [1.0, 2.0], [0.001, 100.0])
    figure = line_panels([Panel("", (line,), logarithmic=True), Panel("", (line,), range=(-1.0, 1.0))])
    assert figure.axis("y")["type"] == "log"
    assert figure.axis("y", 2)["range"] == (-1.0, 1.0)


def test_x_and_y_of_different_length_are_an_error() -> None:
    with pytest.raises(ShapeError, match="'torque'"):
        Line.of("torque", [0.0, 1.0], [1.0])


def test_points_have_intervals() -> None:
    points = Line.of_points("measured", [1.0, 2.0], [3.0, 4.0], [0.1, 0.2])
    (trace,) = line_panels([Panel("", (points,), equal=True)]).data
    assert trace["mode"] == "markers"
    assert list(trace["error_y"]["array"]) == [0.1, 0.2]
    with pytest.raises(ShapeError, match="2, 2 and 1 values"):
        Line.of_points("measured", [1.0, 2.0], [3.0, 4.0], [0.1])


def test_bands_are_filled_and_boxes_are_grouped():
    band = Line.of("estimated ± σ", [0.0, 1.0, 2.0], [1.0, 3.0, 2.0], band=[0.5, 0.5, 1.0])
    figure = line_panels([Panel("q1", (band,)), Panel("q2", (), boxes=(Boxes.of("A", {"x": [1.0, 2.0], "y": [3.0]}),))])
    low, high, line, boxes = figure.data
    assert low["y"] == [0.5, 2.5, 1.0]
    assert high["y"] == [1.5, 3.5, 3.0]
    assert high["fill"] == "tonexty"
    assert "0.3)" in high["fillcolor"]
    assert line["name"] == "estimated ± σ"
    assert (boxes["type"], boxes["x"], boxes["y"]) == ("box", ["x", "x", "y"], [1.0, 2.0, 3.0])
    assert figure.layout["boxmode"] == "group"
