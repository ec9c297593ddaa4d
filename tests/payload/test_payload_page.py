"""The page of a payload: the verdict depends on the errors, and parameters that are not identifiable are marked."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from report_pages import own_part, unpacked

from steelyard.payload import Payload, PayloadRun, PayloadRuns
from steelyard.robot.library import builtin
from steelyard.robot.spatial import parameters_from_com


def run_of(relative_error: float, shown: tuple[bool, ...] = (True,) * 10, **more: Any) -> PayloadRun:
    """A brick of 2.5 kg, 0.1 m from the last link, with a relative error of each parameter."""
    parameters = parameters_from_com(2.5, np.array([0.0, 0.02, 0.1]), np.diag([0.01, 0.012, 0.006]))
    errors = relative_error * np.maximum(np.abs(parameters), 1e-3)
    robot = builtin("ns16")
    return PayloadRun(Payload(robot.link_names[-1], parameters, np.diag(errors**2), shown, **more), robot)


def test_the_page_shows_figures_and_the_ellipsoid() -> None:
    page = run_of(0.01).page()
    assert 'class="verdict good"' in page
    assert "2.500 kg (between 2.451 and 2.549 kg" in page
    own = own_part(page)
    assert len(re.findall(r'<svg class="whisker"', own)) == 10
    (data,) = re.findall(r'class="scene-data">(.*?)</script>', page)
    (body,) = json.loads(unpacked(data))["bodies"]
    place = builtin("ns16").frame()
    assert np.allclose(body["found"]["centre"], place.rotation @ [0.0, 0.02, 0.1] + place.translation, atol=1e-4)
    assert len(page) < 200_000  # without plotly.js


def test_parameters_that_are_not_identifiable_are_marked() -> None:
    hidden = run_of(0.01, (True,) * 9 + (False,)).page()
    assert 'class="verdict warning"' in hidden
    assert own_part(hidden).count("not identifiable from this motion") == 1
    assert 'class="verdict bad"' in run_of(0.9).page()


def test_several_payloads_share_a_page() -> None:
    page = PayloadRuns({"gripper": run_of(0.01), "<b>box</b>": run_of(0.02)}).page()
    assert page.count('class="tab"') == 2
    assert "<b>box</b>" not in page
