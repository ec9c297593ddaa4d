"""The arm, its three regions, what is played in them, and models of all kinds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property

import numpy as np

import steelyard as sy
from steelyard.ground import Array
from steelyard.ground import scalars as sc
from steelyard.local import (
    GLOBAL,
    Bank,
    BankValidation,
    CartesianRegion,
    Design,
    LocalModel,
    MotionLike,
    SimulatedArm,
    default_sensors,
    design,
    home_posture,
    identify_globally,
    identify_locally,
    random_motion,
    validate_bank,
)
from steelyard.parameters import Column, Custom, identification_terms

_TERMS = ("rotor", "coulomb", "viscous", "quadratic")
# Butterworth of order 8 at 30 Hz on logs of 500 Hz (200 Hz in fast mode), as in the paper.
FILTER = sy.Preparation(cutoff_hz=30.0, order=8)
NOISE_PERCENT = 2.0
SECONDS = 10.0
TOTAL = "global, 3 × the data"
TRUTH = "truth"
PLANTS = ("as modelled", "with unmodelled effects")
# What no parameter stands for, in shares of nominal torque: cables and dress packs that pull with the angle, and gears
# whose dry friction varies over the turn.
_UNMODELLED = 0.03


def regions(share: float = 1.0) -> tuple[CartesianRegion, ...]:
    """Three boxes of the wrist's centre: before the arm, to its left, low to its right; `share` shrinks them."""
    corners = {
        "A": ((0.8, -0.3, 0.9), (1.3, 0.3, 1.4)),
        "B": ((0.3, 0.6, 0.7), (0.8, 1.1, 1.2)),
        "C": ((0.7, -0.9, 0.4), (1.2, -0.3, 0.9)),
    }
    out = []
    for name, (low, high) in corners.items():
        middle, half = (np.add(low, high)) / 2.0, share * np.subtract(high, low) / 2.0
        out.append(CartesianRegion(name, middle - half, middle + half, half_width=0.6 * share))
    return tuple(out)


class Lab:
    """Everything is worked out when it is first asked for."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.trajectories, self.rate = (2, 200.0) if fast else (30, 500.0)
        self.candidates = 1 if fast else 6
        self.population, self.generations = (8, 2) if fast else (30, 10)
        self.robot = sy.load_robot("ns16")
        self.regions = regions()
        self.nominal = np.array([joint.effort for joint in self.robot.joints])
        self.terms = identification_terms(self.robot, _TERMS)
        self.truth = sy.Model(self.robot, self.terms, sy.Model.nominal(self.robot).theta)

    @cached_property
    def base(self) -> sy.BaseParameters:
        return sy.base_parameters(self.robot, self.terms)

    @cached_property
    def true_values(self) -> Array:
        return self.base.values(self.truth.theta)

    @cached_property
    def plants(self) -> dict[str, sy.Model]:
        """The arm as it is modelled, and one that pulls and rubs in ways that the model has no words for."""
        pull = Custom(
            name="cable", parameters=(Column("Kc", "N m", "N"),), torque=lambda u, du: (sc.sin(2.0 * u + 0.7),)
        )
        rub = Custom(
            name="eccentric",
            parameters=(Column("Ke", "N m", "N"),),
            torque=lambda u, du: (sc.sin(3.0 * u + 0.3) * sc.tanh(du * 100.0),),
        )
        both = sy.terms(self.robot, *self.terms.terms, pull, rub)
        extra = _UNMODELLED * np.concatenate([self.nominal, self.nominal])
        return dict(
            zip(PLANTS, (self.truth, sy.Model(self.robot, both, np.append(self.truth.theta, extra))), strict=True)
        )

    # ---------------------------------------------------------------- motions

    @cached_property
    def how(self) -> Design:
        return Design(how="via-points", duration=SECONDS, candidates=self.candidates)

    @cached_property
    def motions(self) -> dict[str, MotionLike]:
        """For the regions, for the whole workspace, and for the whole workspace with three times the data."""
        made = {
            r.name: design(self.robot, r, self.terms, replace(self.how, seed=k), self.truth, self.base)
            for k, r in enumerate(self.regions)
        }
        made[GLOBAL] = design(self.robot, None, self.terms, replace(self.how, seed=10), self.truth, self.base)
        three = replace(self.how, seed=11, duration=3.0 * SECONDS)
        made[TOTAL] = design(self.robot, None, self.terms, three, self.truth, self.base)
        return made

    @cached_property
    def trials(self) -> dict[str, list[MotionLike]]:
        """Random programs of six via-points per region."""
        out: dict[str, list[MotionLike]] = {}
        for k, region in enumerate(self.regions):
            rng, home = np.random.default_rng([5, k]), home_posture(self.robot, region)
            out[region.name] = [
                random_motion(self.robot, region, rng, points=6, home=home, model=self.truth)
                for _ in range(self.trajectories)
            ]
        return out

    @cached_property
    def small(self) -> Lab:
        """The same with regions of a third of the size."""
        made = Lab(self.fast)
        made.regions = regions(1.0 / 3.0)
        made.trajectories = min(self.trajectories, 10)
        return made

    # ---------------------------------------------------------------- logs and models

    def arm(self, plant: str, noise: float = NOISE_PERCENT) -> SimulatedArm:
        sensors = default_sensors(self.robot, noise) if noise else sy.Sensors()
        return SimulatedArm(self.plants[plant], sensors, rate=self.rate)

    @cache  # noqa: B019 - a lab lives as long as its run
    def trial_logs(self, plant: str, noise: float) -> dict[str, list[sy.Log]]:
        arm = self.arm(plant, noise)
        return {
            name: [arm(motion, 10_000 + 100 * k + n) for n, motion in enumerate(motions)]
            for k, (name, motions) in enumerate(self.trials.items())
        }

    @cache  # noqa: B019
    def training_log(self, plant: str, name: str) -> sy.Log:
        from steelyard.local import beginning

        run = list(self.motions).index(name)
        return beginning(self.arm(plant)(self.motions[name], run), (3.0 if name == TOTAL else 1.0) * SECONDS)

    @cache  # noqa: B019
    def bank(self, plant: str, physical: bool) -> Bank:
        logs = {r.name: self.training_log(plant, r.name) for r in self.regions}
        return identify_locally(
            self.robot, logs, self.regions, terms=self.terms, motions=self.motions, physical=physical, prior="none",
            preparation=FILTER, check=False,
        )  # fmt: skip

    @cache  # noqa: B019
    def everywhere(self, plant: str, physical: bool, name: str = GLOBAL) -> LocalModel:
        logs = {name: self.training_log(plant, name)}
        return identify_globally(
            self.robot, logs, terms=self.terms, physical=physical, prior="none", preparation=FILTER, check=False
        )

    @cache  # noqa: B019
    def validation(self, plant: str, physical: bool, noise: float = 0.0) -> BankValidation:
        """All models against all motions; without noise, so that nothing but the models errs."""
        one = self.everywhere(plant, physical)
        others = {
            GLOBAL: one,
            TOTAL: self.everywhere(plant, physical, TOTAL),
            TRUTH: replace(one, model=self.plants[plant]),
        }
        return validate_bank(self.bank(plant, physical), self.trial_logs(plant, noise), others=others)
