"""Validates a model against a known plant in four ways.

The ways can disagree: a model with good torque predictions may be impossible to simulate, and a stiff controller can
hide a wrong model. Urrea & Pascal 2017 compare four parameter sets by controller tracking; only the other ways
distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard.assessment.replay import Possibility, possibility
from steelyard.assessment.sensitivity import agreement_index, residual_standard_deviation, rms
from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.simulation import PD, ComputedTorque, Ending, FeedForward, Simulation, simulate

# Position [rad, m] beyond which a simulation counts as diverged.
_LOST = 1e2


@dataclass(frozen=True)
class Way:
    """Result of one way of validation.

    Attributes:
        name: Name of the way.
        unit: Unit of the errors.
        errors: RMS error of each joint, or None if the simulation failed.
        reason: Reason of the failure, or "".
        rsd: Residual standard deviation of each joint relative to the signal: 0 is perfect, 1 as bad as predicting
            zero.
        agreement_index: Index of agreement of each joint (Willmott): 1 is perfect, 0 no agreement.
    """

    name: str
    unit: str
    errors: tuple[float, ...] | None
    reason: str = ""
    rsd: tuple[float, ...] | None = None
    agreement_index: tuple[float, ...] | None = None

    @classmethod
    def compared(cls, name: str, unit: str, observed: Array, predicted: Array) -> Way:
        """Compute all measures of a way.

        Args:
            name: Name of the way.
            unit: Unit of the signals.
            observed: Signals of the plant or reference, shape (samples, joints).
            predicted: Signals of the model, shape (samples, joints).
        """
        measures = (rms, residual_standard_deviation, agreement_index)
        errors, rsd, agreement = (tuple(measure(observed, predicted).tolist()) for measure in measures)
        return cls(name, unit, errors, rsd=rsd, agreement_index=agreement)

    @property
    def passed(self) -> bool:
        """Whether the simulation finished."""
        return self.errors is not None


@short_repr
@dataclass(frozen=True)
class Validation:
    """Results of all four ways, and the physical possibility of the model."""

    torque_prediction: Way
    open_loop: Way
    feed_forward: Way
    computed_torque: Way
    possibility: Possibility

    @property
    def ways(self) -> tuple[Way, ...]:
        return self.torque_prediction, self.open_loop, self.feed_forward, self.computed_torque

    def __iter__(self) -> Iterator[Way]:
        return iter(self.ways)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the parameters."""
        return concerns(self.possibility, self.ways)

    def to_json(self) -> dict[str, Any]:
        return {
            **{way.name: asdict(way) for way in self.ways},
            "mass_matrix_positive_definite": self.possibility.simulable,
            "indefinite_share": self.possibility.indefinite_share,
            "warnings": list(self.warnings),
        }


def concerns(checked: Possibility, ways: Iterable[Way]) -> tuple[str, ...]:
    """List warnings about the parameters of a model.

    Args:
        checked: Physical possibility of the model.
        ways: Results of the ways of validation.
    """
    out = []
    if not checked.simulable:
        out.append(
            f"The mass matrix is not positive definite in {100.0 * checked.indefinite_share:.0f} % of the postures "
            f"(smallest eigenvalue {checked.smallest_mass_eigenvalue:.3g}). These parameters are physically impossible."
        )
    if checked.negative:
        out.append(f"Friction or rotor inertia is negative: {', '.join(checked.negative)}.")
    failed = [way.name for way in ways if not way.passed]
    if failed:
        out.append(f"Simulations that failed: {', '.join(failed)}.")
    return tuple(out)


def validate(
    model: Model,
    plant: Model,
    reference: Any,
    *,
    duration: float,
    gains: PD | None = None,
    bandwidth_rad_s: float = 20.0,
    step: float = 1e-3,
    horizon: float | None = None,
) -> Validation:
    """Validate a model on a known plant in four ways.

    1. Torque prediction: torque of the model along the motion of the plant.
    2. Open loop: the model is simulated with the torques of the plant.
    3. Feed-forward: PD with feed-forward torques of the model, on the plant.
    4. Computed torque with the model, on the plant.

    The errors of 3 and 4 are tracking errors. The motion of the plant in 1 and 2 is under PD with its own feed-forward.
    If a simulation fails, its result has a reason instead of errors.

    Args:
        model: Model to validate.
        plant: True model.
        reference: Reference motion with a method `sample(t)`.
        duration: Duration of the motion [s].
        gains: PD gains; None: for the plant at `bandwidth_rad_s`.
        bandwidth_rad_s: Bandwidth of the controllers [rad/s].
        step: Step of the simulation [s].
        horizon: Duration of the open-loop simulation [s]; None: the whole motion.
    """
    if not (duration > 0.0 and step > 0.0 and bandwidth_rad_s > 0.0 and (horizon is None or horizon > 0.0)):
        raise SteelyardError("duration, step, bandwidth_rad_s and horizon must be positive.")
    pd = gains or PD.for_model(plant, bandwidth_rad_s=bandwidth_rad_s)
    start, speed, _ = (x[0] for x in reference.sample(np.zeros(1)))

    def on_plant(controller: Any) -> Simulation:
        return simulate(
            plant, controller, duration=duration, step=step, q0=start, dq0=speed, reference=reference, throw=False,
            bound=_LOST,
        )  # fmt: skip

    true = on_plant(FeedForward.from_gains(pd, plant))
    if not true.ok:
        raise SimulationError("The plant does not follow the reference under its own feed-forward. Choose other gains.")
    target = reference.sample(true.t)[0]
    joints = [j.kind for j in plant.robot.joints]
    length = "rad" if all(kind == "revolute" for kind in joints) else "rad, m"
    torque = model.torque(true.q, true.dq, true.ddq)
    computed = ComputedTorque.for_model(model, bandwidth_rad_s=bandwidth_rad_s)
    return Validation(
        Way.compared("torque prediction", "N m, N" if "," in length else "N m", true.tau, torque),
        _way("open loop", length, lambda: _open_loop(model, true, horizon, step)),
        _way("feed-forward", length, lambda: _tracking(on_plant(FeedForward.from_gains(pd, model)), target)),
        _way("computed torque", length, lambda: _tracking(on_plant(computed), target)),
        possibility(model),
    )


def _way(name: str, unit: str, signals: Callable[[], tuple[Array, Array]]) -> Way:
    try:
        return Way.compared(name, unit, *signals())
    except SimulationError as error:
        return Way(name, unit, None, str(error))


def _open_loop(model: Model, true: Simulation, horizon: float | None, step: float) -> tuple[Array, Array]:
    count = len(true.t) if horizon is None else min(len(true.t), max(2, round(horizon / step)))
    run = simulate(
        model, true.tau[:count], times=true.t[:count], step=step, q0=true.q[0], dq0=true.dq[0], throw=False,
        bound=_LOST,
    )  # fmt: skip
    return _tracking(run, true.q[:count])


def _tracking(run: Simulation, target: Array) -> tuple[Array, Array]:
    """Return target and simulated positions; raise an error if the simulation failed."""
    if not run.ok:
        ending = "diverged" if run.outcome[0] == Ending.DIVERGED else "lost its positive definite mass matrix"
        raise SimulationError(f"It {ending} at t = {run.stopped[0]:.3g} s.")
    return target, run.q
