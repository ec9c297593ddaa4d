"""What the conformance suite hands to an estimator: rows or experiments, spoilt in the same ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from estimation_cases import case, in_blocks, nothing, without_columns
from experiment_cases import loop_case

from steelyard.estimation import ESTIMATORS, make_estimator, make_experiment_estimator

# A ridge without a prior is drawn to zero on purpose; this one hardly.
OPTIONS = {"ridge": {"strength": 1e-12}}


class OfRows:
    """Rows of a robot whose motion is known exactly."""

    robots = ("rotradi", "szabo3r")

    def __init__(self, name: str) -> None:
        self.estimator = make_estimator(name, **OPTIONS.get(name, {}))
        # Rounding times cond(A) ~ 1e3; the ridge's pull; the log-det term where residuals are nothing but rounding.
        self.accuracy = 1e-6

    def case(self, robot: str) -> Any:
        return case(robot)

    def clean(self, robot: str) -> Any:
        return case(robot).data()

    def noisy(self, seed: int = 1, scale: float = 1.0) -> Any:
        c = case("rotradi")
        return c.data(c.noise(np.random.default_rng(seed)), scale=scale)

    def two_orders(self) -> tuple[Any, Any]:
        data = self.noisy()
        return in_blocks(data, 5, None), in_blocks(data, 5, np.random.default_rng(0))

    def hiding(self) -> tuple[Any, str]:
        """Data that do not show a parameter, and its name."""
        return without_columns(self.noisy(), 4), case("rotradi").base.names[4]

    def not_a_number(self) -> tuple[Any, str]:
        c = case("rotradi")
        noise = c.noise(np.random.default_rng(1))
        noise[17, 1] = np.nan
        return c.data(noise), f"Row 18 of equation '{c.robot.joint_names[1]}'"

    def nothing(self) -> Any:
        return nothing(self.noisy())


class OfExperiments:
    """Logs of a robot that was simulated under its controller, with white noise on positions and torques."""

    robots = ("rotradi", "prrrp")

    def __init__(self, name: str) -> None:
        self.estimator = make_experiment_estimator(name)
        # Simulation: what is left of the unknown start. Else: a 20 Hz low-pass of the motion, whose accelerations and
        # friction jumps it bends; that is what these estimators share with least squares.
        self.accuracy = 1e-4 if name in ("didim", "cloe", "clie") else 2e-2

    def case(self, robot: str) -> Any:
        # The PRRRP's arm is light: a loop as slow as the other's would lag by 0.3 rad, too much for DIDIM.
        return loop_case(robot, bandwidth=40.0 if robot == "rotradi" else 80.0)

    def clean(self, robot: str) -> Any:
        return self.case(robot).experiment()

    def noisy(self, seed: int = 1, scale: float = 1.0) -> Any:
        c = self.case("rotradi")
        return c.experiment(c.log(1e-5, 0.02, seed, scale), scale)

    def two_orders(self) -> tuple[Any, Any]:
        c = self.case("rotradi")
        both = c.experiment([c.log(1e-5, 0.02, 1), c.log(1e-5, 0.02, 2)], references=[c.reference] * 2)
        return both, replace(both, runs=both.runs[::-1])

    def hiding(self) -> tuple[Any, str]:
        """All joints but the first stand still."""
        made = self.noisy()
        m = made.runs[0].motion
        only = np.eye(made.robot.dof)[0]
        stood = replace(m, q=m.q * only, dq=m.dq * only, ddq=m.ddq * only)
        return replace(made, runs=(replace(made.runs[0], motion=stood),)), "do not show all base parameters"

    def not_a_number(self) -> tuple[Any, str]:
        made = self.noisy()
        tau = made.runs[0].tau.copy()
        tau[17, 1] = np.nan
        run = replace(made.runs[0], motion=replace(made.runs[0].motion, tau=tau))
        return replace(made, runs=(run,)), f"Row 18 of equation '{made.robot.joint_names[1]}'"

    def nothing(self) -> Any:
        return replace(self.noisy(), runs=())


def subject(name: str) -> OfRows | OfExperiments:
    return OfRows(name) if ESTIMATORS[name].of.needs == "rows" else OfExperiments(name)
