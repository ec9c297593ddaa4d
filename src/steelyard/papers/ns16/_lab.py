"""The laboratory of Pedrocchi et al. 2013: the arm, its three regions, their motions, and models of all kinds."""

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
from steelyard.papers.paper import Statement, claim_result, measurement
from steelyard.papers.result_cache import ResultCache
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
# Effects without a parameter, as shares of nominal torque: cables and dress packs that pull with the angle, and gears
# with dry friction that varies over the turn.
UNMODELLED = 0.03

# Searches for a region's motion. All of them use (7) with the scaling (6) as printed.
EVOLVED, RANDOM, GRADIENT = "evolved", "random", "gradient"
WAYS = (EVOLVED, RANDOM, GRADIENT, GLOBAL)
_SCALING = "torque"
# Generations with a gain below 1 % of the determinant after which a search stops.
PATIENCE = 20


def regions(share: float = 1.0) -> tuple[CartesianRegion, ...]:
    """Return three boxes of the wrist's centre: in front, to the left, low to the right; `share` scales them."""
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
    """Shared objects, computed lazily; `cache` stores motions and errors of single draws."""

    def __init__(self, fast: bool) -> None:
        self.fast = fast
        self.trajectories, self.rate = (2, 100.0) if fast else (30, 500.0)
        self.ways = (EVOLVED, RANDOM, GLOBAL) if fast else WAYS
        self.compared = PLANTS[1:] if fast else PLANTS
        self.draws = 1 if fast else 10
        self.population, self.generations = (8, 3) if fast else (150, 100)
        # Shortest gradient-based search of motions, for a fast run.
        short = SearchSettings(1, (), (4.0,), 1, 8)
        self.search, self.harmonics = (short, 2) if fast else (Design().search, Design().harmonics)
        self.robot = sy.load_robot("ns16")
        self.regions = regions()
        self.size = ""
        self.cache = ResultCache()
        self.nominal = np.array([joint.effort for joint in self.robot.joints])
        self.terms = identification_terms(self.robot, _TERMS)
        self.truth = sy.Model(self.robot, self.terms, sy.Model.nominal(self.robot).theta)

    @property
    def fast_note(self) -> str:
        """Note on the size of a fast run."""
        return " A fast run: far fast_note than the paper's, no evidence of anything." if self.fast else ""

    def claim_result_of(self, claim: str, holds: Any, result: str, why: str = "") -> Statement:
        """Return the result of a claim about the models; a fast run only reports the result."""
        return measurement(claim, result) if self.fast else claim_result(claim, holds, result, why)

    @cached_property
    def base(self) -> sy.BaseParameters:
        return sy.base_parameters(self.robot, self.terms)

    @cached_property
    def true_values(self) -> Array:
        return self.base.values(self.truth.theta)

    @cached_property
    def plants(self) -> dict[str, sy.Model]:
        """The arm as modelled, and one with effects that the model lacks."""
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

    @cache  # noqa: B019 - a lab lives as long as its run
    def evolution(self, region: str, draw: int = 0) -> tuple[MotionLike, Array, float]:
        """Return the evolved motion of a region, the best log10 det(HᵀH) per generation, and the largest violation."""
        k, box = next((k, r) for k, r in enumerate(self.regions) if r.name == region)

        def evolve() -> dict[str, Any]:
            plan = evolved_plan(
                self.robot, box, self.terms, optimiser=Genetic(self.population, self.generations),
                weights=_SCALING, model=self.truth, rate=RATE, seed=1000 * draw + k, patience=PATIENCE,
            )  # fmt: skip
            best = [-value / np.log(10.0) for _, value in plan.history]
            motion = Repeated(plan.trajectory, int(np.ceil(SECONDS / plan.trajectory.duration)))
            return {"motion": motion_to_dict(motion), "best": best, "violation": plan.violation}

        table = self.cache(f"evolution{self.size} {region} {draw}", evolve).table(("motion", "best", "violation"))
        motion = motion_from_dict(table["motion"], self.robot)
        return motion, table["best"].array(None), table["violation"].number()

    @cache  # noqa: B019
    def motion(self, way: str, region: str, draw: int = 0) -> MotionLike:
        """Return the motion for a region, or (`GLOBAL`) for the whole workspace."""
        if way == EVOLVED:
            return self.evolution(region, draw)[0]
        k, box = next(((k, r) for k, r in enumerate(self.regions) if r.name == region), (9, None))
        how = Design(
            "via-points" if way == RANDOM else "gradient", SECONDS, candidates=1, weights=_SCALING, search=self.search,
            harmonics=self.harmonics, seed=1000 * draw + 100 + k,
        )  # fmt: skip
        document = self.cache(
            f"motion{self.size} {way} {region} {draw}",
            lambda: motion_to_dict(design(self.robot, box, self.terms, how, self.truth, self.base).motion),
        )
        return motion_from_dict(document, self.robot)

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
        """The same laboratory with regions of a third of the size."""
        lab = Lab(self.fast)
        lab.regions, lab.size, lab.cache = regions(1.0 / 3.0), ", a third of the size", self.cache
        lab.trajectories = min(self.trajectories, 10)
        return lab

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
        """Return ten seconds of a search's motion; every repetition (`again`) has other noise."""
        run = 100 * draw + 10 * WAYS.index(way) + "ABC".find(region) + 1 + 5000 * again
        return first_seconds(self.arm(plant)(self.motion(way, region, draw), run), SECONDS)

    @cache  # noqa: B019
    def bank(self, plant: str, physical: bool = False, way: str = EVOLVED, draw: int = 0) -> Bank:
        logs = {r.name: self.training_log(plant, way, r.name, draw) for r in self.regions}
        motions = {r.name: self.motion(way, r.name, draw) for r in self.regions}
        return identify_locally(
            self.robot, logs, self.regions, terms=self.terms, motions=motions, physical=physical, prior="none",
            preparation=FILTER, check=False, base=self.base,
        )  # fmt: skip

    @cache  # noqa: B019
    def everywhere(self, plant: str, physical: bool = False, draw: int = 0, plays: int = 1) -> LocalModel:
        """Return the model from the one global motion, played once or several times."""
        logs = {GLOBAL: [self.training_log(plant, GLOBAL, "", draw, again) for again in range(plays)]}
        return identify_globally(
            self.robot, logs, terms=self.terms, physical=physical, prior="none", preparation=FILTER, check=False,
            base=self.base,
        )  # fmt: skip

    @cache  # noqa: B019
    def at_home(self, plant: str, noise: float = 0.0) -> BankValidation:
        """Validate the local models of the first draw (fitted without physical constraints) in their own regions."""
        return validate_bank(self.bank(plant), self.trial_logs(plant, noise))

    @cache  # noqa: B019
    def validation(self, plant: str, physical: bool) -> BankValidation:
        """Validate the models of the first draw on all motions, without noise, so that all errors are the models'."""
        one = self.everywhere(plant, physical)
        others = {
            GLOBAL: one,
            TOTAL: self.everywhere(plant, physical, plays=3),
            TRUTH: replace(one, model=self.plants[plant]),
        }
        return validate_bank(self.bank(plant, physical), self.trial_logs(plant, 0.0), others=others)

    @cache  # noqa: B019
    def errors(self, plant: str, draw: int) -> dict[str, Array]:
        """Return, by search, mean errors in percent of nominal torque (regions, trials) of each model at home."""

        def compute() -> dict[str, Any]:
            banks = {way: self.bank(plant, False, way, draw) for way in self.ways if way != GLOBAL}
            others = {f"{way} {x.name}": x for way, bank in banks.items() for x in bank.models}
            others[GLOBAL] = self.everywhere(plant, False, draw)
            validation = validate_bank(banks[EVOLVED], self.trial_logs(plant, 0.0), others=others)

            def of(way: str, region: str) -> list[float]:
                model = way if way == GLOBAL else f"{way} {region}"
                return list(validation.percent(model, region).mean(axis=1).tolist())

            return {way: [of(way, r.name) for r in self.regions] for way in self.ways}

        errors = self.cache(f"errors {plant} {draw}", compute).entries()
        return {way: errors[way].array(len(self.regions), None) for way in self.ways}
