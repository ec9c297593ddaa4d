"""A small arm identified from a simulated log, once per session."""

from __future__ import annotations

import pytest

from steelyard.demo import simulated_log
from steelyard.dynamics import Model
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot.library import builtin


@pytest.fixture(scope="session")
def identified_arm() -> Identification:
    """Rotradi arm with its terms."""
    truth = Model.nominal(builtin("rotradi"))
    return identify(truth.robot, simulated_log(truth, 1), terms="viscous,coulomb")
