"""Data for the conformance suite: rows or experiments, with the same kinds of defects."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from estimation_cases import case, in_blocks, nothing, without_columns
from experiment_cases import loop_case

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.estimation import ESTIMATORS, Estimate, make_estimator

# A ridge without a prior is biased towards zero; this strength is negligible. 500 particles are enough for a pendulum.
OPTIONS: dict[str, dict[str, Any]] = {"ridge": {"strength": 1e-12}, "pf": {"particles": 500}}


class OfRows:
    """Rows of a robot with an exactly known motion."""

    robots = ("rotradi", "szabo3r")
    # Range of the root mean square of 21 errors over their standard errors.
    honest = (0.5, 1.5)

    def __init__(self, name: str) -> None:
        self.estimator = make_estimator(name, **OPTIONS.get(name, {}))
        # Rounding times cond(A) ~ 1e3; bias of the ridge; the log-det term if residuals are only rounding. Networks
        # end when a pass changes nothing by more than 1e-10, which is early if they converge slowly.
        self.accuracy = 1e-5 if ESTIMATORS[name].of.order_matters else 1e-6

    def case(self, robot: str) -> Any:
        return case(robot)

    @property
    def home(self) -> Any:
        """The robot of most tests."""
        return self.case(self.robots[0])

    def clean(self, robot: str) -> Any:
        return case(robot).data()

    def noisy(self, seed: int = 1, scale: float = 1.0) -> Any:
        return self.home.data(self.home.noise(np.random.default_rng(seed)), scale=scale)

    def two_orders(self) -> tuple[Any, Any]:
        data = self.noisy()
        return in_blocks(data, 5, None), in_blocks(data, 5, np.random.default_rng(0))

    def hiding(self) -> tuple[Any, str]:
        """Data that do not determine a parameter, and a pattern for the message."""
        return without_columns(self.noisy(), 4), self.home.base.names[4]

    def not_a_number(self) -> tuple[Any, str]:
        noise = self.home.noise(np.random.default_rng(1))
        noise[17, 1] = np.nan
        return self.home.data(noise), f"Row 18 of equation '{self.home.robot.joint_names[1]}'"

    def nothing(self) -> Any:
        return nothing(self.noisy())


class OfExperiments:
    """Logs of a robot simulated with its controller, with white noise on positions and torques."""

    robots: tuple[str, ...] = ("rotradi", "prrrp")
    # The low-pass distorts accelerations and jumps of friction by some standard errors.
    honest = (0.3, 2.0)
    noise = 1e-5, 0.02

    def __init__(self, name: str) -> None:
        self.estimator = make_estimator(name, **OPTIONS.get(name, {}))
        # Simulation: the effect of the unknown initial state. Others: distortion of accelerations and jumps of
        # friction by a 20 Hz low-pass, as in least squares. 500 particles: a scatter of some percent.
        self.accuracy = 1e-4 if name in ("didim", "cloe", "clie") else 0.05 if name == "pf" else 2e-2

    def case(self, robot: str) -> Any:
        # The PRRRP's arm is light: with the bandwidth of the other its lag of 0.3 rad would be too large for DIDIM.
        return loop_case(robot, bandwidth_rad_s=40.0 if robot == "rotradi" else 80.0)

    @property
    def home(self) -> Any:
        return self.case(self.robots[0])

    def clean(self, robot: str) -> Any:
        return self.case(robot).experiment()

    def noisy(self, seed: int = 1, scale: float = 1.0) -> Any:
        return self.home.experiment(self.home.log(*self.noise, seed, scale), scale)

    def two_orders(self) -> tuple[Any, Any]:
        c = self.home
        both = c.experiment([c.log(*self.noise, 1), c.log(*self.noise, 2)], references=[c.reference] * 2)
        return both, replace(both, runs=both.runs[::-1])

    def hiding(self) -> tuple[Any, str]:
        """Only the first joint moves; a robot with one joint stands still."""
        made = self.noisy()
        m = made.runs[0].motion
        only = np.eye(made.robot.dof)[0] * (made.robot.dof > 1)
        stood = replace(m, q=m.q * only, dq=m.dq * only, ddq=m.ddq * only)
        return replace(made, runs=(replace(made.runs[0], motion=stood),)), "Not all base parameters are identifiable"

    def not_a_number(self) -> tuple[Any, str]:
        made = self.noisy()
        tau = made.runs[0].tau.copy()
        tau[17, -1] = np.nan
        run = replace(made.runs[0], motion=replace(made.runs[0].motion, tau=tau))
        return replace(made, runs=(run,)), f"Row 18 of equation '{made.robot.joint_names[-1]}'"

    def nothing(self) -> Any:
        return replace(self.noisy(), runs=())


class OfFilters(OfExperiments):
    """Short logs, because a filter takes a step for every sample."""

    robots = ("rotradi", "pendulum")
    noise = 1e-4, 0.02

    def case(self, robot: str) -> Any:
        return loop_case(robot, seconds=3.0, rate=200.0)


class OfParticles(OfFilters):
    """A robot with few parameters; positions always have noise, because no particle would match exact ones."""

    robots = ("pendulum",)

    def clean(self, robot: str) -> Any:
        return self.noisy()


def subject(name: str) -> OfRows | OfExperiments:
    of = ESTIMATORS[name].of
    if of.needs == "rows":
        return OfRows(name)
    return (OfParticles if name == "pf" else OfFilters if of.family == "filter" else OfExperiments)(name)


@cache
def fitted(name: str) -> Estimate:
    """An estimate from noisy data, cached for several tests."""
    with compiled_at_once():
        s = subject(name)
        return s.estimator.fit(s.noisy(), s.home.base)
