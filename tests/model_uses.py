"""Shared by tests that simulate, validate and predict: an arm, its model, a motion, the program."""

from __future__ import annotations

import numpy as np
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app

ARM = sy.load_robot("szabo3r")
MODEL = sy.Model.nominal(ARM)


class Swing:
    """All joints oscillate, starting at rest."""

    duration = 1.0

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        a, w, x = np.array([0.3, 0.2, 0.4]), 2.0 * np.pi, np.asarray(t)[:, None]
        return a * (1.0 - np.cos(w * x)), a * w * np.sin(w * x), a * w**2 * np.cos(w * x)


def run(*arguments: object):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120", "NO_COLOR": "1"})
