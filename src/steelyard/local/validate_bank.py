"""Validates local models with random motions in their own regions, in other regions and against a global model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Outcome
from steelyard.ground.progress import ProgressCallback, reports_progress, steps
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.identify import Logs, PlantLike, player_of
from steelyard.local.motions import MotionLike, home_posture, random_motion
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import prepare

if TYPE_CHECKING:
    from rich.console import Console


BANK = "bank"
# Numbers of validation runs, which select their noise, differ from those of identification runs.
_FIRST_RUN = 10_000


@dataclass(frozen=True, eq=False)
class Example:
    """Torques of one motion, for a plot.

    Attributes:
        t: Times [s].
        measured: Measured torques [N m, N], shape (samples, joints).
        predicted: Torques of the region's own model.
        band: Standard deviation of a measurement about `predicted`.
    """

    t: Array
    measured: Array
    predicted: Array
    band: Array


@dataclass(frozen=True, eq=False)
class _RegionTrials:
    """Errors of all motions in one region.

    Attributes:
        region: Name of the region.
        samples: Number of samples per motion, shape (trials,).
        squares: Sums of squared errors by model, shape (trials, joints).
        covered: Share of samples within the own model's ±σ band, shape (trials, joints).
        example: Torques of the first motion.
    """

    region: str
    samples: Array
    squares: dict[str, Array]
    covered: Array
    example: Example

    def rmse(self, model: str) -> Array:
        """Root mean square errors [N m, N] of a model, shape (trials, joints): ‖e‖₂/√S."""
        return np.sqrt(self.squares[model] / self.samples[:, None])

    def printed(self, model: str) -> Array:
        """Pedrocchi et al. 2013, eq. (8) as printed: ‖e‖₂/S, which is √S too small to be the RMSE."""
        return np.sqrt(self.squares[model]) / self.samples[:, None]


@short_repr
@dataclass(frozen=True, eq=False)
class BankValidation(Outcome):
    """Errors of local models, the bank and other models over many motions.

    Attributes:
        bank: The bank.
        nominal: Reference torque of each joint for relative errors [N m, N].
        models: Names of the models: the regions, other models, the bank.
        regions: Errors in each region.
    """

    bank: Bank
    nominal: Array
    models: tuple[str, ...]
    regions: tuple[_RegionTrials, ...]

    @property
    def robot(self) -> Robot:
        return self.bank.robot

    @property
    def others(self) -> list[str]:
        """Names of the models for comparison: all except the bank and its local models."""
        return [m for m in self.models if m not in [r.region for r in self.regions] and m != BANK]

    def trials(self, region: str) -> _RegionTrials:
        """Return the errors of the motions in `region`."""
        return next(r for r in self.regions if r.region == region)

    def percent(self, model: str, region: str) -> Array:
        """Compute the RMSE in percent of each joint's nominal torque, shape (trials, joints) (eq. 9, τ_nom per joint).

        Args:
            model: Name of a model.
            region: Name of a region.
        """
        return 100.0 * self.trials(region).rmse(model) / self.nominal

    def table(self) -> Array:
        """Return the mean errors in percent of nominal torque, models × regions."""
        return np.array([[float(self.percent(m, r.region).mean()) for r in self.regions] for m in self.models])

    def against(self, model: str) -> dict[str, dict[str, float]]:
        """Compare every region's own model with another `model`.

        Returns:
            By region the ratio of mean errors (below 1: the local model is better), the share of motions in which the
            local model is better, and the p value of that (Wilcoxon's signed ranks, one-sided).
        """
        from scipy.stats import wilcoxon

        out = {}
        for r in self.regions:
            own, other = (self.percent(m, r.region).mean(axis=1) for m in (r.region, model))
            p = float(wilcoxon(own, other, alternative="less").pvalue) if len(own) > 1 else 1.0
            out[r.region] = {"ratio": float(own.mean() / other.mean()), "wins": float(np.mean(own < other)), "p": p}
        return out

    def to_json(self) -> dict[str, Any]:
        table = self.table()
        return explained(
            {
                "joints": self.robot.joint_names,
                "nominal_torque": self.nominal.tolist(),
                "mean_error_percent_of_nominal": {
                    m: {r.region: float(table[i, k]) for k, r in enumerate(self.regions)}
                    for i, m in enumerate(self.models)
                },
                "local_against": {m: self.against(m) for m in self.others},
                "regions": [self._region(r) for r in self.regions],
            }
        )

    def page(self) -> str:
        from steelyard.local.page import bank_report

        return bank_report(self.bank, self)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.local.page import print_validation

        print_validation(self, out, folder)

    def _region(self, r: _RegionTrials) -> dict[str, Any]:
        return {
            "region": r.region,
            "trajectories": len(r.samples),
            "within_one_sigma_band": r.covered.mean(axis=0).tolist(),
            "models": {
                m: {
                    "rmse": r.rmse(m).mean(axis=0).tolist(),
                    "as_printed": r.printed(m).mean(axis=0).tolist(),
                    "percent_of_nominal": self.percent(m, r.region).mean(axis=0).tolist(),
                    "percent_of_nominal_each": self.percent(m, r.region).tolist(),
                }
                for m in self.models
            },
        }


@reports_progress
def validate_bank(
    bank: Bank,
    source: PlantLike | Logs,
    *,
    trajectories: int = 30,
    points: int = 6,
    others: Mapping[str, LocalModel] | None = None,
    nominal: Model | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> BankValidation:
    """Play random via-point motions in every region and compute the errors of all models.

    Args:
        bank: Bank with the local models.
        source: A `Model` to simulate, a function that plays motions, or logs by region.
        trajectories: Number of motions per region.
        points: Number of via-points per motion.
        others: Other models by name, such as a global one.
        nominal: Model that keeps the motions within the torque limits.
        seed: Seed of the motions.
        progress: Callback for progress (`steelyard.ground.progress`).
    """
    if not isinstance(source, Mapping) and trajectories < 1:
        raise LocalError(f"trajectories is {trajectories}; validation needs at least one.")
    logs = source if isinstance(source, Mapping) else _played(bank, source, trajectories, points, nominal, seed)
    models = {**{x.name: x.model for x in bank.models}, **{name: x.model for name, x in (others or {}).items()}}
    regions = []
    for local in steps(bank.models, "Judging", lambda x: x.name, 0.0 if isinstance(source, Mapping) else 0.9):
        if local.name not in logs:
            raise LocalError(f"No log to validate region '{local.name}'; give at least one.")
        one = logs[local.name]
        regions.append(_trials(bank, local, models, [one] if isinstance(one, Log) else list(one)))
    return BankValidation(bank, _nominal_torques(bank, logs), (*models, BANK), tuple(regions))


def _played(
    bank: Bank, source: PlantLike, trajectories: int, points: int, nominal: Model | None = None, seed: int = 0
) -> dict[str, list[Log]]:
    """Logs of random motions in every region."""
    player = player_of(source)
    out: dict[str, list[Log]] = {}
    run = _FIRST_RUN
    for k, local in enumerate(bank.models):
        rng = np.random.default_rng([seed, k])
        home = home_posture(bank.robot, local.region)
        out[local.name] = []
        width = 0.9 / len(bank.models)
        for _ in steps(range(trajectories), f"Playing motions in {local.name}", str, k * width, (k + 1) * width):
            motion: MotionLike = random_motion(bank.robot, local.region, rng, points=points, home=home, model=nominal)
            out[local.name].append(player(motion, run))
            run += 1
    return out


def _nominal_torques(bank: Bank, logs: Logs) -> Array:
    """Reference torques for relative errors: the torque limits of the robot, else the largest torques in the logs."""
    stated = np.array([j.effort for j in bank.robot.joints])
    every = [log for one in logs.values() for log in ([one] if isinstance(one, Log) else one)]
    largest = np.max([np.max(np.abs(log.tau), axis=0) for log in every if log.tau is not None], axis=0)
    return np.where(np.isfinite(stated) & (stated > 0.0), stated, np.maximum(largest, 1e-12))


def _trials(bank: Bank, local: LocalModel, models: Mapping[str, Model], logs: Sequence[Log]) -> _RegionTrials:
    sums, counts, covered, examples = zip(*(_trial(bank, local, models, log) for log in logs), strict=True)
    squares = {name: np.array([one[name] for one in sums]) for name in (*models, BANK)}
    return _RegionTrials(local.name, np.array(counts, dtype=float), squares, np.array(covered), examples[0])


def _trial(
    bank: Bank, local: LocalModel, models: Mapping[str, Model], log: Log
) -> tuple[dict[str, Array], int, Array, Example]:
    """Sums of squares of one log: measured and predicted torque through the filter of the fit, every sample."""
    whole = replace(local.settings.preparation, decimation=1, mask=0.0)
    sums = {name: np.zeros(bank.robot.dof) for name in (*models, BANK)}
    count, within = 0, np.zeros(bank.robot.dof)
    example: Example | None = None
    for m in prepare(log, whole, local.cutoff_hz):
        # The filter smooths the jumps of friction at reversals, so it is applied to predicted torques as well.
        measured = m.filter(m.tau, m.keep)
        torques = {name: model.torque(m.q, m.dq, m.ddq, m.filter.period) for name, model in models.items()}
        torques[BANK] = bank.predict(m.q, m.dq, m.ddq, outside="flag")
        smooth = {name: m.filter(torque, m.keep) for name, torque in torques.items()}
        for name, torque in smooth.items():
            sums[name] += np.sum((measured - torque) ** 2, axis=0)
        band = local.band(m.q[m.keep], m.dq[m.keep], m.ddq[m.keep])
        within += np.sum(np.abs(measured - smooth[local.name]) <= band, axis=0)
        count += len(measured)
        example = example or Example(m.t[m.keep], measured, smooth[local.name], band)
    if example is None:
        raise LocalError(f"A validation log of region '{local.name}' is too short to filter at {local.cutoff_hz:g} Hz.")
    return sums, count, within / count, example
