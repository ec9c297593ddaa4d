"""The arm, its three regions, what is played in them, and models of all kinds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np

import steelyard as sy
from steelyard.excitation import Genetic, SearchSettings
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
    Repeated,
    SimulatedArm,
    default_sensors,
    design,
    evolved_plan,
    first_seconds,
    home_posture,
    identify_globally,
    identify_locally,
    motion_from_dict,
    motion_to_dict,
    random_motion,
    validate_bank,
)
from steelyard.papers.paper import Statement, measured, shown
from steelyard.papers.pieces import Pieces
from steelyard.parameters import Column, Custom, identification_terms

_TERMS = ("rotor", "coulomb", "viscous", "quadratic")
# Butterworth of order 8 at 30 Hz on logs of 500 Hz (100 Hz in fast mode), as in the paper.
FILTER = sy.Preparation(cutoff_hz=30.0, order=8)
NOISE_PERCENT = 2.0
SECONDS = 10.0
RATE = 50.0
TOTAL = "global, 3 × the data"
TRUTH = "truth"
PLANTS = ("as modelled", "with unmodelled effects")
# What no parameter stands for, in shares of nominal torque: cables and dress packs that pull with the angle, and gears
# whose dry friction varies over the turn.
UNMODELLED = 0.03

# Where a region's motion comes from. All are designed for (7) with the scaling (6) as printed; the search differs.
EVOLVED, RANDOM, GRADIENT = "evolved", "random", "gradient"
WAYS = (EVOLVED, RANDOM, GRADIENT, GLOBAL)
_SCALING = "torque"
# Twenty generations that bring less than 1 % of the determinant: it stands still.
PATIENCE = 20


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
    """Everything is worked out when it is first asked for; motions and errors of single draws are kept as `pieces`."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.trajectories, self.rate = (2, 100.0) if fast else (30, 500.0)
        self.ways = (EVOLVED, RANDOM, GLOBAL) if fast else WAYS
        self.compared = PLANTS[1:] if fast else PLANTS
        self.draws = 1 if fast else 10
        self.population, self.generations = (8, 3) if fast else (150, 100)
        # A fast run looks for gradients' motions as briefly as can be.
        short = SearchSettings(1, (), (4.0,), 1, 8)
        self.search, self.harmonics = (short, 2) if fast else (Design().search, Design().harmonics)
        self.robot = sy.load_robot("ns16")
        self.regions = regions()
        self.size = ""
        self.pieces = Pieces()
        self.nominal = np.array([joint.effort for joint in self.robot.joints])
        self.terms = identification_terms(self.robot, _TERMS)
        self.truth = sy.Model(self.robot, self.terms, sy.Model.nominal(self.robot).theta)

    @property
    def smaller(self) -> str:
        """What a fast run says of its size."""
        return " A fast run: far smaller than the paper's, no evidence of anything." if self.fast else ""

    def tested(self, claim: str, holds: Any, found: str, why: str = "") -> Statement:
        """What the models say of a claim; a fast run says only what came out."""
        return measured(claim, found) if self.fast else shown(claim, holds, found, why)

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
        extra = UNMODELLED * np.concatenate([self.nominal, self.nominal])
        return dict(
            zip(PLANTS, (self.truth, sy.Model(self.robot, both, np.append(self.truth.theta, extra))), strict=True)
        )

    # ---------------------------------------------------------------- motions

    @cache  # noqa: B019 - a lab lives as long as its run
    def evolution(self, region: str, draw: int = 0) -> tuple[MotionLike, Array, float]:
        """The motion bred for a region, the best log10 det(HᵀH) after every generation, and its worst violation."""
        k, box = next((k, r) for k, r in enumerate(self.regions) if r.name == region)

        def bred() -> dict[str, Any]:
            plan = evolved_plan(
                self.robot, box, self.terms, optimiser=Genetic(self.population, self.generations),
                weights=_SCALING, model=self.truth, rate=RATE, seed=1000 * draw + k, patience=PATIENCE,
            )  # fmt: skip
            best = [-value / np.log(10.0) for _, value in plan.history]
            played = Repeated(plan.trajectory, int(np.ceil(SECONDS / plan.trajectory.duration)))
            return {"motion": motion_to_dict(played), "best": best, "violation": plan.violation}

        found = self.pieces(f"evolution{self.size} {region} {draw}", bred).table(("motion", "best", "violation"))
        played = motion_from_dict(found["motion"], self.robot)
        return played, found["best"].array(None), found["violation"].number()

    @cache  # noqa: B019
    def motion(self, way: str, region: str, draw: int = 0) -> MotionLike:
        """What is played in a region, or (`GLOBAL`) everywhere."""
        if way == EVOLVED:
            return self.evolution(region, draw)[0]
        k, box = next(((k, r) for k, r in enumerate(self.regions) if r.name == region), (9, None))
        how = Design(
            "via-points" if way == RANDOM else "gradient", SECONDS, candidates=1, weights=_SCALING, search=self.search,
            harmonics=self.harmonics, seed=1000 * draw + 100 + k,
        )  # fmt: skip
        made = self.pieces(
            f"motion{self.size} {way} {region} {draw}",
            lambda: motion_to_dict(design(self.robot, box, self.terms, how, self.truth, self.base)),
        )
        return motion_from_dict(made, self.robot)

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
        made.regions, made.size, made.pieces = regions(1.0 / 3.0), ", a third of the size", self.pieces
        made.trajectories = min(self.trajectories, 10)
        return made

    # ---------------------------------------------------------------- logs and models

    def arm(self, plant: str, noise: float = NOISE_PERCENT) -> SimulatedArm:
        sensors = default_sensors(self.robot, noise) if noise else sy.Sensors()
        return SimulatedArm(self.plants[plant], sensors, rate=self.rate)

    @cache  # noqa: B019
    def trial_logs(self, plant: str, noise: float) -> dict[str, list[sy.Log]]:
        arm = self.arm(plant, noise)
        return {
            name: [arm(motion, 10_000 + 100 * k + n) for n, motion in enumerate(motions)]
            for k, (name, motions) in enumerate(self.trials.items())
        }

    @cache  # noqa: B019
    def training_log(self, plant: str, way: str, region: str, draw: int = 0, again: int = 0) -> sy.Log:
        """Ten seconds of a way's motion; played `again` it has other noise."""
        run = 100 * draw + 10 * WAYS.index(way) + "ABC".find(region) + 1 + 5000 * again
        return first_seconds(self.arm(plant)(self.motion(way, region, draw), run), SECONDS)

    @cache  # noqa: B019
    def bank(self, plant: str, physical: bool = False, way: str = EVOLVED, draw: int = 0) -> Bank:
        logs = {r.name: self.training_log(plant, way, r.name, draw) for r in self.regions}
        played = {r.name: self.motion(way, r.name, draw) for r in self.regions}
        return identify_locally(
            self.robot, logs, self.regions, terms=self.terms, motions=played, physical=physical, prior="none",
            preparation=FILTER, check=False, base=self.base,
        )  # fmt: skip

    @cache  # noqa: B019
    def everywhere(self, plant: str, physical: bool = False, draw: int = 0, plays: int = 1) -> LocalModel:
        """From the one global motion, played once or several times."""
        logs = {GLOBAL: [self.training_log(plant, GLOBAL, "", draw, again) for again in range(plays)]}
        return identify_globally(
            self.robot, logs, terms=self.terms, physical=physical, prior="none", preparation=FILTER, check=False,
            base=self.base,
        )  # fmt: skip

    @cache  # noqa: B019
    def at_home(self, plant: str, noise: float = 0.0) -> BankValidation:
        """The free models of the first draw in all regions, alone."""
        return validate_bank(self.bank(plant), self.trial_logs(plant, noise))

    @cache  # noqa: B019
    def validation(self, plant: str, physical: bool) -> BankValidation:
        """Models of the first draw against all motions; without noise, so that nothing but the models errs."""
        one = self.everywhere(plant, physical)
        others = {
            GLOBAL: one,
            TOTAL: self.everywhere(plant, physical, plays=3),
            TRUTH: replace(one, model=self.plants[plant]),
        }
        return validate_bank(self.bank(plant, physical), self.trial_logs(plant, 0.0), others=others)

    @cache  # noqa: B019
    def errors(self, plant: str, draw: int) -> dict[str, Array]:
        """By way: mean errors in percent of nominal torque `(regions, trials)` of its models, each at home."""

        def found() -> dict[str, Any]:
            banks = {way: self.bank(plant, False, way, draw) for way in self.ways if way != GLOBAL}
            others = {f"{way} {x.name}": x for way, bank in banks.items() for x in bank.models}
            others[GLOBAL] = self.everywhere(plant, False, draw)
            made = validate_bank(banks[EVOLVED], self.trial_logs(plant, 0.0), others=others)

            def of(way: str, region: str) -> list[float]:
                return list(made.percent(way if way == GLOBAL else f"{way} {region}", region).mean(axis=1).tolist())

            return {way: [of(way, r.name) for r in self.regions] for way in self.ways}

        kept = self.pieces(f"errors {plant} {draw}", found).entries()
        return {way: kept[way].array(len(self.regions), None) for way in self.ways}
