"""Payload files for controllers: units, frames, axes and digits, read back and compared with closed forms."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import steelyard as sy
from steelyard.payload import PAYLOAD_TARGETS, ControllerPayload, Payload
from steelyard.robot.spatial import parameters_from_com

NUMBER = r"-?\d+(?:\.\d+)?"
# A bar of 3 kg, 0.4 × 0.1 × 0.2 m, turned by 30° about z and 20° about the new y, centred at (50, −20, 120) mm.
MASS, SIZE, CENTRE = 3.0, np.array([0.4, 0.1, 0.2]), np.array([0.05, -0.02, 0.12])
OWN = MASS / 12.0 * np.array([SIZE[1] ** 2 + SIZE[2] ** 2, SIZE[0] ** 2 + SIZE[2] ** 2, SIZE[0] ** 2 + SIZE[1] ** 2])


def about(axis, degrees):
    angle, k = np.radians(degrees), np.eye(3)[axis]
    cross = np.cross(np.eye(3), k)
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


TURN = about(2, 30.0) @ about(1, 20.0)
TENSOR = TURN @ np.diag(OWN) @ TURN.T
EXACT = Payload("flange", parameters_from_com(MASS, CENTRE, TENSOR), np.zeros((10, 10)))


def code(name, load=EXACT):
    """A file without its comments."""
    target = PAYLOAD_TARGETS[name]
    lines = target.text(load).splitlines()
    return "\n".join(line for line in lines if not (target.comment and line.startswith(target.comment)))


def floats(text):
    return np.array(re.findall(NUMBER, text), dtype=float)


def test_universal_robots_take_the_tensor_at_the_centre_in_flange_axes():
    mass, *rest = floats(code("ur"))
    assert mass == MASS
    assert rest[:3] == pytest.approx(CENTRE, rel=1e-5)  # six digits of an exact payload
    entries = [TENSOR[ij] for ij in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    assert rest[3:] == pytest.approx(entries, rel=1e-5)


def test_franka_takes_the_tensor_by_columns():
    fields = json.loads(code("franka"))
    assert set(fields) == {"mass", "center_of_mass", "load_inertia"}  # the fields of franka_msgs/srv/SetLoad
    assert np.reshape(fields["load_inertia"], (3, 3), order="F") == pytest.approx(TENSOR, rel=1e-5)
    assert fields["center_of_mass"] == pytest.approx(CENTRE)


def test_kuka_and_abb_take_moments_about_principal_axes():
    """The axes and moments of both give the tensor; KUKA's angles are the orientation of the bar."""
    data = re.search(r"LOAD_DATA\[1\]=(.*)", code("kuka"))[1]
    named = dict(re.findall(rf"\b([A-Z]+) ({NUMBER})", data.partition(", J ")[0]))
    about_axes = floats(data.partition(", J ")[2])
    assert [float(named[x]) for x in "XYZ"] == pytest.approx(1000.0 * CENTRE)
    a, b, c = (float(named[x]) for x in "ABC")
    assert (a, b, c) == pytest.approx((30.0, 20.0, 0.0), abs=0.01)
    R = about(2, a) @ about(1, b) @ about(0, c)
    assert R @ np.diag(about_axes) @ R.T == pytest.approx(TENSOR, abs=1e-4 * OWN.max())  # angles to 0.01°

    mass, *rest = floats(re.search(r":= (.*);", code("abb"))[1])
    assert mass == MASS
    assert rest[:3] == pytest.approx(1000.0 * CENTRE)
    w, v = rest[3], np.array(rest[4:7])
    assert w**2 + v @ v == pytest.approx(1.0, abs=1e-5)
    cross = np.cross(np.eye(3), v)
    R = np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross
    assert R @ np.diag(rest[7:]) @ R.T == pytest.approx(TENSOR, abs=1e-4 * OWN.max())


def test_fanuc_uses_centimetres_and_kilograms_of_force():
    figures = dict(re.findall(rf"\$PLST_GRP1\[1\]\.(\S+) = ({NUMBER})", code("fanuc")))
    assert [float(figures[f"$PAYLOAD_{x}"]) for x in "XYZ"] == pytest.approx([5.0, -2.0, 12.0])
    # A ring of 1 kg and 1 m has 1 kg m² = 1 N m s² = (1/9.80665) kgf · 100 cm s².
    assert float(figures["$PAYLOAD_IX"]) == pytest.approx(TENSOR[0, 0] * 10.19716, rel=1e-5)


def with_errors(scale):
    """The bar with error bars: a scale of 1 is 20 g, 20 g m and 0.002 kg m²."""
    return Payload("flange", EXACT.parameters, (scale * np.array([0.02] * 4 + [0.002] * 6)) ** 2 * np.eye(10))


def test_figures_are_rounded_to_the_second_digit_of_their_error():
    known = ControllerPayload(with_errors(1.0))
    assert str(known.mass) == "3.0"
    for figure in (known.mass, *known.centre, *known.moments):
        place = 10.0 ** (np.floor(np.log10(figure.error)) - 1.0)  # the second digit of the error
        assert figure.rounded == pytest.approx(round(figure.value / place) * place, abs=1e-12)
        assert abs(figure.rounded - figure.value) <= 0.5 * place
    assert "3.000 +/- 0.02" in PAYLOAD_TARGETS["ur"].text(with_errors(1.0))


def test_insignificant_products_of_inertia_do_not_turn_the_axes():
    clear, vague = ControllerPayload(with_errors(0.1)), ControllerPayload(with_errors(20.0))
    assert abs(clear.principal[0][0, 1]) > 0.3
    assert np.array_equal(vague.principal[0], np.eye(3))
    assert "95 % interval includes zero" in PAYLOAD_TARGETS["kuka"].text(with_errors(20.0))


def test_a_tensor_that_is_not_identifiable_becomes_a_point_mass_with_a_remark():
    shown = tuple(k != 9 for k in range(10))
    load = Payload("flange", np.where(shown, EXACT.parameters, 0.0), np.diag(np.where(shown, 1e-4, 0.0)), shown)
    text = PAYLOAD_TARGETS["ur"].text(load)
    assert "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0])" in text
    assert text.count("not identifiable from this motion") == 6
    assert floats(code("ur", load))[1:4] == pytest.approx(CENTRE, abs=0.01)  # the centre is identifiable
    with pytest.raises(sy.SteelyardError, match="mass of the payload"):
        PAYLOAD_TARGETS["abb"].text(Payload("flange", EXACT.parameters, np.zeros((10, 10)), (False,) + (True,) * 9))


def test_no_controller_gets_an_impossible_tensor():
    parameters = EXACT.parameters.copy()
    parameters[4] = 0.0
    text = PAYLOAD_TARGETS["ur"].text(Payload("flange", parameters, np.zeros((10, 10))))
    assert "this tensor is physically impossible" in text
    assert "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0])" in text


FLANGE = """<robot name="wrist"><link name="base"/><link name="hand"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="tool0"/>
<joint name="j" type="continuous"><parent link="base"/><child link="hand"/><axis xyz="0 0 1"/></joint>
<joint name="f" type="fixed"><parent link="hand"/><child link="tool0"/>
<origin xyz="0 0 0.2" rpy="0 0 1.5707963267948966"/></joint></robot>"""


def test_a_payload_is_converted_to_the_flange_frame(tmp_path):
    """The flange is 20 cm above its link and turned by 90° about z: x of the link is −y of the flange."""
    (tmp_path / "wrist.urdf").write_text(FLANGE)
    robot = sy.load_robot(tmp_path / "wrist.urdf")
    body = parameters_from_com(2.0, [0.1, 0.03, 0.25], np.diag([0.004, 0.006, 0.005]))
    there = Payload("hand", body, np.zeros((10, 10))).in_frame(robot, "tool0")
    assert floats(code("ur", there))[1:4] == pytest.approx([0.03, -0.1, 0.05])
    assert floats(code("ur", there))[4:] == pytest.approx([0.006, 0.004, 0.005, 0.0, 0.0, 0.0], abs=1e-9)
