"""Coefficients of base parameters are recognised as formulas."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import papers.closed_forms as forms
import pytest
from oracles import public_robot_path
from random_robots import make_tree

from steelyard.parameters import nominal_terms, terms
from steelyard.regression._coefficient import Recogniser, decimal, dimension, quotient
from steelyard.regression._lengths import Length, lengths_of, with_changed_lengths
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot import load_robot
from steelyard.robot.library import builtin_names

SUPERSCRIPT = {"²": "**2", "·": "*"}


def coefficients(formula: str, base: BaseParameters) -> np.ndarray:
    """The row of the matrix according to a formula."""
    for mark, operator in SUPERSCRIPT.items():
        formula = formula.replace(mark, operator)
    names = [p.name for p in base.parameters]
    known = {**base.robot.lengths, "g": float(np.linalg.norm(base.robot.gravity)), **dict.fromkeys(names, 0.0)}
    used = set(re.findall(r"[A-Za-z_]\w*", formula))
    assert used <= set(known)
    return np.array([eval(formula, {}, {**known, n: 1.0}) if n in used else 0.0 for n in names])


@pytest.mark.parametrize("name", [*builtin_names(), "ur10", "panda", "kinova", "anymal", "baxter", "tree"])
def test_formulas_agree_with_the_matrix(name: str) -> None:
    if name in builtin_names():
        robot = load_robot(name)
        bound = nominal_terms(robot)[0] if robot.nominal_terms else None
    else:
        robot = make_tree(4, 5) if name == "tree" else load_robot(public_robot_path(name))
        bound = terms(robot, "rotor")
    base = base_parameters(robot, bound)
    for formula, row in zip(base.formulas, base.matrix, strict=True):
        # Numbers without a formula are printed with eight digits.
        np.testing.assert_allclose(coefficients(formula, base), row, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("rotradi", "Izz1 + D2²·m2 + 2·D2·mz2 + Iyy2 + Iyy3 + (L2² + (D2 + D3)²)·m3 + 2·(D2 + D3)·mz3"),
        ("rotradi", "mx2 + L2·m3"),
        ("rotradi", "Ixz2 - L2·D3·m3 - L2·mz3"),
        ("irp6", "Izz2 + l2²·m3"),
        ("ns16", "Iyy1 + a1²·m2 + Iyy2 + Izz3 + (a1² + a2²)·m3 + (a1² + a2² + a3²)·(m4 + m5 + m6)"),
        ("ns16", "Ixx3 - Izz3 - a3²·m4 + Izz4 + (d4² - a3²)·(m5 + m6)"),
        ("ns16", "Ixz3 - a3·my4 - a3·d4·(m5 + m6)"),
        ("arm7", "Izz6 + d7²·m7 + 2·d7·mz7 + Iyy7"),
        ("prrrp", "m1 - 2·mx2/l2 - Izz2/l2²"),
        ("prrrp", "mx4 + (Izz4 + Izz5)/l4 + mx5"),
        ("ur10", "mz2 + 0.612·(m3 + m4 + m5 + m6)"),
        ("ur10", "Iyy2 + 0.612²·(m3 + m4 + m5 + m6)"),
    ],
)
def test_a_formula_reads_as_in_a_textbook(name: str, formula: str) -> None:
    robot = load_robot(name) if name in builtin_names() else load_robot(public_robot_path(name))
    assert formula in base_parameters(robot).formulas


def test_equal_lengths_are_distinguished() -> None:
    """Both arms of szabo3r are 0.5 m long, and 0.5 might be a pure number: only other lengths can decide."""
    robot = load_robot("szabo3r")
    formulas = base_parameters(robot, order=forms.SZABO_ORDER).formulas
    assert "m2 + mx2/l2 - mx3/l3" in formulas
    assert "Iyy1 + l2·mx2 + Iyy2 + Iyy3 + l3·mx3" in formulas


@pytest.mark.parametrize("name", ["rotradi", "irp6-wrist", "ns16", "arm7"])
def test_formulas_stay_when_lengths_change(name: str) -> None:
    robot = load_robot(name)
    lengths = lengths_of(robot)
    changed = with_changed_lengths(robot, lengths)
    named = {x.text: x.changed for x in lengths if x.text in robot.lengths}
    changed = replace(changed, lengths={**robot.lengths, **named})
    assert base_parameters(changed).formulas == base_parameters(robot).formulas


def length(text: str, value: float) -> Length:
    return Length(text, value, value * (1.1 + 0.01 * ord(text[0]) % 0.2), frozenset({0}))


A, B, C, D = (length(*x) for x in (("a", 0.3), ("b", 0.7), ("c", 0.185), ("d", 0.624)))


@pytest.mark.parametrize(
    ("degree", "formula", "text"),
    [
        (0, lambda a, b, c, d: 2.0, "2·x"),
        (0, lambda a, b, c, d: 1.5, "3·x/2"),
        (0, lambda a, b, c, d: 25.0 / 9.0, "25·x/9"),
        (0, lambda a, b, c, d: a / d, "a·x/d"),
        (1, lambda a, b, c, d: b, "b·x"),
        (1, lambda a, b, c, d: b / 2, "0.5·b·x"),
        (1, lambda a, b, c, d: d - a, "(d - a)·x"),
        (1, lambda a, b, c, d: 2 * (a + b), "2·(a + b)·x"),
        (1, lambda a, b, c, d: a + d - c, "(a + d - c)·x"),
        (2, lambda a, b, c, d: a * a, "a²·x"),
        (2, lambda a, b, c, d: 2 * a * b, "2·a·b·x"),
        (2, lambda a, b, c, d: a * a + b * b, "(a² + b²)·x"),
        (2, lambda a, b, c, d: d * d - a * a, "(d² - a²)·x"),
        (2, lambda a, b, c, d: a * a + b * b + c * c, "(a² + b² + c²)·x"),
        (2, lambda a, b, c, d: a * a + b * b - c * c, "(a² + b² - c²)·x"),
        (2, lambda a, b, c, d: (a + b) ** 2, "(a + b)²·x"),
        (2, lambda a, b, c, d: (a + b) ** 2 + d * d, "(d² + (a + b)²)·x"),
        (2, lambda a, b, c, d: c * (b - a), "c·(b - a)·x"),
        (-1, lambda a, b, c, d: 1 / b, "x/b"),
        (-1, lambda a, b, c, d: 2 / b, "2·x/b"),
        (-2, lambda a, b, c, d: 1 / (a * b), "x/(a·b)"),
        (2, lambda a, b, c, d: np.pi * a * a, None),
        (3, lambda a, b, c, d: a**3, None),
    ],
)
def test_what_is_recognised(degree: int, formula, text: str | None) -> None:
    lengths = (A, B, C, D)
    values = np.array([formula(*(x.value for x in lengths)), formula(*(x.changed for x in lengths))])
    noise = 1.0 + 1e-12 * np.array([1.0, -1.0])  # the elimination's rounding
    found = Recogniser(lengths).recognise(values * noise, degree)
    assert (found and found.times("x")) == text
    if found:
        assert found.value == pytest.approx(values[0], rel=1e-15)


def test_a_coincidence_is_no_formula() -> None:
    """0.09 equals a² for a = 0.3, but does not follow when a changes."""
    assert Recogniser((A, B)).recognise(np.array([0.09, 0.09]), 2) is None
    assert decimal(0.09).times("m3") == "0.09·m3"
    assert decimal(1.0 / 3.0).times("m3") == "0.33333333·m3"


def test_units_have_dimensions() -> None:
    assert dimension("kg m²") == (1, 2, 0)
    assert dimension("N m s/rad") == (1, 2, -1)
    assert dimension("N s²/m²") == (1, -1, 0)
    assert dimension("volts") is None
    assert quotient("kg m²", "kg") == (0, 2, 0)
    assert quotient("kg m", "N m") == (0, -1, 2)
    assert quotient("volts", "volts") == (0, 0, 0)
    assert quotient("volts", "kg") is None
