"""`Growth`: fits of one set of runs; the fit of each structure starts from the fits of simpler structures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_structure import DriveStructure
from steelyard.actuators.fit_drive import DriveFit, fit_drive, robust_cost, robust_scale, usual_values
from steelyard.actuators.linear_start import linear_starts
from steelyard.actuators.rollout import FINE_STEP, QUICK_STEP, Rollouts
from steelyard.actuators.uncertainty import covariance_of
from steelyard.ground.arrays import Array

# Number of additional first values, drawn within a factor of ten around typical ones, and number of starts with the
# smallest rollout errors that are fitted. A simulation of all runs takes milliseconds.
_DRAWS, _BEST = 60, 3
# The same for larger structures, within a factor of two around the fit of a smaller one: with friction the cost has
# many local minima, and a single search may end in one of them.
_NEAR = 30
_PARENTS = {"M2": ("M1",), "M3": ("M1",), "M4": ("M3", "M2"), "M5": ("M4",), "M6": ("M5",)}
# Relative changes of the cost that end a search: in the comparison of structures, and for the result.
_QUICK, _FINE, _EXACT = 1e-3, 1e-4, 1e-7
# Searches around the result: largest number, number of consecutive failures that ends them, and the distance of their
# starts in standard deviations.
_TRIES, _FAILURES, _AROUND = 12, 4, 3.0
# If the residuals are correlated over more samples, model errors exceed the differences between local minima.
_MODEL_ERROR = 10.0
# Starts of new terms, as multiples of their typical value: a weak effect and a strong one.
_SIZES = (0.2, 1.0)
# The zero of an encoder may be at any angle of the load: turns of its rest angle [rad] for the linear starts.
_TURNS = (0.0, 0.5 * math.pi, math.pi, -0.5 * math.pi)
# Largest error over the error of full duty, of the first values with a full duty.
_FULL_AT = (1.1, 1.5, 2.2, 4.0)


class Growth:
    """Fits of a set of runs.

    Args:
        logs: Runs.
        supply: Voltage of each run [V].
        given: Known parameters.
        stride: Number of samples between two compared positions.
        seed: The same seed gives the same starts.
        whole: Fits of a larger set with these runs; each fit starts from the one of that set.
    """

    def __init__(
        self, logs: Sequence[CommandLog], supply: Sequence[Array], given: Mapping[str, float], stride: int, seed: int,
        whole: Growth | None = None,
    ) -> None:  # fmt: skip
        self.logs, self._supply, self._given, self._seed = tuple(logs), list(supply), dict(given), seed
        self._stride, self._whole = stride, whole
        self.rollouts = Rollouts(logs, supply, QUICK_STEP, stride)
        self._fits: dict[DriveStructure, DriveFit] = {}
        self._fine_fits: dict[DriveStructure, DriveFit] = {}

    def fit(self, structure: DriveStructure, more: Mapping[str, float] | None = None) -> DriveFit:
        """Return the fit of a structure, computed once.

        Args:
            structure: Structure.
            more: Further first values.
        """
        if structure not in self._fits and self._whole is not None:
            first = self._whole.fit(structure)
            self._fits[structure] = self._search(structure, first.values, first.scale, _QUICK)
        if structure not in self._fits:
            starts = self._from_parents(structure) + ([dict(more)] if more else [])
            if structure.friction != "M1" or len(structure.effects) > 1:
                starts += self._ranked(structure, self._near(structure, starts), 1)
            # The scale of the loss comes from simpler structures; `final` determines it again.
            scales = [fit.scale for s, fit in self._fits.items() if s.kind == structure.kind]
            scale = min(scales) if scales else None
            fits = [self._search(structure, start, scale, _QUICK) for start in starts]
            best = self._best(fits)
            if full := self._at_full_duty(best):
                best = self._best([best, self._search(structure, full, best.scale, _QUICK)])
            self._fits[structure] = best
        return self._fits[structure]

    @cached_property
    def fine(self) -> Rollouts:
        """The runs with the step of the result."""
        return Rollouts(self.logs, self._supply, FINE_STEP, self._stride)

    def fine_fit(self, structure: DriveStructure) -> DriveFit:
        """Return the fit of a `structure` with the fine step, from its quick fit; computed once."""
        if structure not in self._fine_fits:
            first = self.fit(structure)
            scale = min([fit.scale for fit in self._fine_fits.values()] or [first.scale])
            given = {n: v for n, v in self._given.items() if n in structure.names}
            self._fine_fits[structure] = fit_drive(
                structure, self.fine, first.values, given, scale, most=15, tolerance=_FINE
            )
        return self._fine_fits[structure]

    def final(self, structure: DriveStructure, starts: Sequence[Mapping[str, float]]) -> tuple[DriveFit, Rollouts]:
        """Fit a structure also from further starts, then with a fine step; return the fit and its rollouts.

        Args:
            structure: Structure.
            starts: First values, such as the fits of other sets of runs.
        """
        first = self.fit(structure)
        more = [self._search(structure, start, first.scale, _QUICK) for start in starts]
        best = self._best([first, *more])
        fine, given = self.fine, {n: v for n, v in self._given.items() if n in structure.names}
        scale = robust_scale(best.residual, fine)
        fit = fit_drive(structure, fine, best.values, given, scale, most=40, tolerance=_EXACT, free_starts=True)
        return self._polished(fit, fine, given), fine

    def _polished(self, fit: DriveFit, rollouts: Rollouts, given: Mapping[str, float]) -> DriveFit:
        """Fit again from points around the fit: every stop of the joint adds small local minima to the cost."""
        rng = np.random.default_rng(self._seed)
        failures = 0
        for _ in range(_TRIES):
            covariance, memory = covariance_of(fit, rollouts)
            if memory > _MODEL_ERROR:
                return fit
            size = np.array([max(abs(fit.values[n]), 1e-9) for n in fit.free])
            eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(size, size))
            # At most half of a value: along a direction that the runs do not determine, values would be unphysical.
            root = np.minimum(_AROUND * np.sqrt(np.maximum(eigenvalues, 0.0)), 0.5)
            step = size * (vectors @ (root * rng.standard_normal(len(size))))
            start = {n: fit.values[n] + float(x) for n, x in zip(fit.free, step, strict=True)}
            again = fit_drive(
                fit.structure, rollouts, start, given, scale=fit.scale, most=20, tolerance=1e-5, free_starts=True
            )
            failures = 0 if again.cost < fit.cost * (1.0 - 1e-3) else failures + 1
            fit = min(fit, again, key=lambda f: f.cost)
            if failures >= _FAILURES:
                break
        return fit_drive(
            fit.structure, rollouts, fit.values, given, scale=fit.scale, most=20, tolerance=_EXACT, free_starts=True
        )

    def _at_full_duty(self, fit: DriveFit) -> dict[str, float]:
        """First values with the same torque per radian, and a full duty in these runs; {} if the fit has one.

        Below full duty only the product of gain and torque per volt has an effect, so a search does not find the limit.
        """
        if "duty_gain" not in fit.free or fit.values["duty_gain"] * self._largest_error() >= 1.0:
            return {}
        product = fit.values["duty_gain"] * fit.values["torque_per_volt"]
        gains = [part / self._largest_error() for part in _FULL_AT]
        pool = [{**fit.values, "duty_gain": gain, "torque_per_volt": product / gain} for gain in gains]
        return self._ranked(fit.structure, pool, 1)[0]

    def _search(self, s: DriveStructure, start: Mapping[str, float], scale: float | None, tolerance: float) -> DriveFit:
        given = {n: v for n, v in self._given.items() if n in s.names}
        return fit_drive(s, self.rollouts, start, given, scale=scale, most=40, tolerance=tolerance)

    def _best(self, fits: Sequence[DriveFit]) -> DriveFit:
        # One scale for all, because a bad fit has a wider loss and would have a smaller cost.
        scale = min(fit.scale for fit in fits)
        return min(fits, key=lambda fit: robust_cost(fit.residual, scale))

    def _near(self, s: DriveStructure, starts: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
        rng, usual = np.random.default_rng(self._seed), usual_values(self.rollouts)
        out = []
        for k in range(_NEAR):
            values = {**usual, **starts[k % len(starts)]}
            size = np.exp(rng.uniform(-0.7, 0.7, len(s.names)))
            out.append({n: float(values[n] * x) for n, x in zip(s.names, size, strict=True)})
        return out

    def _ranked(self, s: DriveStructure, pool: Sequence[Mapping[str, float]], best: int) -> list[dict[str, float]]:
        """The first values with the smallest rollout errors."""
        usual = usual_values(self.rollouts)
        costs = []
        for start in pool:
            values = {n: self._given.get(n, start.get(n, usual[n])) for n in s.names}
            values = {n: v if n == "offset" else max(v, 1e-3 * usual[n]) for n, v in values.items()}
            q, _ = self.rollouts.simulate(s, values)
            residual = np.nan_to_num(q - self.rollouts.measured, nan=1e3, posinf=1e3, neginf=-1e3)
            costs.append(robust_cost(np.clip(residual, -1e3, 1e3), 0.1))
        return [dict(pool[k]) for k in np.argsort(costs)[:best]]

    def _from_parents(self, s: DriveStructure) -> list[dict[str, float]]:
        optional = [e for e in s.effects if e != "delay"]
        usual = usual_values(self.rollouts)
        out = []
        if optional:
            # Start from the fit of the structure without the last effect.
            parent = self.fit(replace(s, effects=tuple(e for e in s.effects if e != optional[-1])))
            for size in _SIZES:
                first = usual[optional[-1]] * size
                if optional[-1] in ("torque_limit", "no_load_speed"):
                    first = self._largest(parent, optional[-1]) * (1.0 if size < 1.0 else 0.75)
                out.append({**parent.values, optional[-1]: first})
            return out
        if s.friction == "M1":
            return self._first(s)
        parents = _PARENTS[s.friction]
        for name in parents:
            parent = self.fit(replace(s, friction=name))
            for size in _SIZES if len(parents) == 1 else _SIZES[1:]:
                out.append(_grown(parent.values, s, size, usual))
        return out

    def _largest(self, fit: DriveFit, effect: str) -> float:
        """The largest torque or speed in these runs, for a fit without a limit."""
        values = fit.values
        if effect == "no_load_speed":
            speeds = [np.max(np.abs(np.gradient(log.position, log.time))) for log in self.logs]
            return 1.5 * float(max(speeds))
        if fit.structure.kind == "voltage":
            return values["torque_per_volt"] * self.rollouts.volts
        stiffness = values.get("stiffness", values.get("kp_gain", 1.0))
        errors = [
            np.nanmax(np.abs(log.goal - log.position)[log.enabled], initial=0.0) * (log.kp if log.kp == log.kp else 1.0)
            if fit.structure.kind == "torque" else np.nanmax(np.abs(log.goal - log.position)[log.enabled], initial=0.0)
            for log in self.logs
        ]  # fmt: skip
        return max(stiffness * float(max(errors)), 1e-6)

    def _first(self, s: DriveStructure) -> list[dict[str, float]]:
        """Rank the linear starts and random ones by their rollouts."""
        usual = usual_values(self.rollouts)
        rng = np.random.default_rng(self._seed)
        pool: list[dict[str, float]] = []
        for turn in _TURNS if "offset" not in self._given else (0.0,):
            logs = [replace(log, load=replace(log.load, rest_angle=log.load.rest_angle - turn)) for log in self.logs]
            linear = [start for start in linear_starts(logs, self._supply, s.kind, self._given) if start]
            pool += [{**{"delay": 0.003, "offset": turn}, **start} for start in linear]
        for _ in range(_DRAWS):
            size = np.exp(rng.uniform(-2.3, 2.3, len(s.names)))
            drawn = {n: usual[n] * float(x) for n, x in zip(s.names, size, strict=True)} | {"offset": 0.0}
            if "duty_gain" in drawn:  # relative to the gain that saturates at the largest error
                drawn["duty_gain"] = float(np.exp(rng.uniform(-0.5, 3.0))) / self._largest_error()
            pool.append(drawn)
        return self._ranked(s, pool, _BEST)

    def _largest_error(self) -> float:
        sizes = [
            float(np.nanmax(np.abs(log.goal - log.position)[log.enabled], initial=0.0))
            * (log.kp if log.kp > 0 else 1.0)
            for log in self.logs
        ]
        return max(*sizes, 1e-9) if sizes else 1.0


def _grown(values: Mapping[str, float], s: DriveStructure, size: float, usual: Mapping[str, float]) -> dict[str, float]:
    """The values of a structure with fewer friction terms, and first values of the new terms."""
    out = dict(values)
    both = ("load_friction", "load_friction_stribeck")
    for name in s.names:
        if name in out:
            continue
        base = next((b for b in both if name in (f"{b}_motor", f"{b}_external", *_split(b))), "")
        out[name] = values[base] if base in values else usual[name] * (1.0 if name == "stribeck_velocity" else size)
    if "friction_stribeck" not in values and "friction_stribeck" in out:
        # The friction at standstill becomes the sum of both terms and does not increase.
        share = 0.5 * size
        out["friction_stribeck"] = max(values["friction_base"] * share, usual["friction_stribeck"] * 0.1)
        out["friction_base"] = values["friction_base"] * (1.0 - share)
    return out


def _split(base: str) -> tuple[str, str]:
    if base == "load_friction":
        return "load_friction_motor", "load_friction_external"
    return "load_friction_motor_stribeck", "load_friction_external_stribeck"
