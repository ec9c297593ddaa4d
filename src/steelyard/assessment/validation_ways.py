"""Four ways to validate a set of parameters, and why they do not agree.

A model may predict torques well and not be simulable; a stiff loop may hide a model that is far off. Urrea & Pascal
2017 judge four parameter sets by the tracking of one controller; only the other ways tell these sets apart.
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
from steelyard.ground.renamed import renamed
from steelyard.simulation import PD, ComputedTorque, Ending, FeedForward, Simulation, simulate

# Of tracking errors: a run in which a joint strays this far (rad, m) from its reference has not followed it.
_LOST = 1e2


@dataclass(frozen=True)
class Way:
    """One way: root mean square errors per joint (N m or N; rad or m), or None and the reason why there are none.

    `rsd` is the residual standard deviation per joint, a share of the signal (0 is perfect, 1 as good as nothing), and
    `agreement_index` Willmott's (1 is perfect, 0 none): both of Urrea & Pascal 2017, None where they are not known.
    """

    name: str
    unit: str
    errors: tuple[float, ...] | None
    reason: str = ""
    rsd: tuple[float, ...] | None = None
    agreement_index: tuple[float, ...] | None = None

    @classmethod
    def compared(cls, name: str, unit: str, observed: Array, predicted: Array) -> Way:
        """A way with all its measures.

        Args:
            name: what it is called.
            unit: of the signals.
            observed: the signals of the plant, or those that were wanted, `(samples, joints)`.
            predicted: those that the model leads to, alike.
        """
        measures = (rms, residual_standard_deviation, agreement_index)
        errors, rsd, agreement = (tuple(measure(observed, predicted).tolist()) for measure in measures)
        return cls(name, unit, errors, rsd=rsd, agreement_index=agreement)

    @property
    def passed(self) -> bool:
        """Whether there are errors at all: the model came through."""
        return self.errors is not None


@dataclass(frozen=True)
class Validation:
    """All four ways, and whether the numbers can belong to a robot."""

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
        """What must be said of the parameters before any error is read."""
        return concerns(self.possibility, self.ways)

    def to_json(self) -> dict[str, Any]:
        return {
            **{way.name: asdict(way) for way in self.ways},
            "mass_matrix_positive_definite": self.possibility.simulable,
            "indefinite_share": self.possibility.indefinite_share,
            "warnings": list(self.warnings),
        }


def concerns(seen: Possibility, ways: Iterable[Way]) -> tuple[str, ...]:
    """What must be said of parameters before any error is read: what was `seen` of them, and which `ways` broke off."""
    out = []
    if not seen.simulable:
        out.append(
            f"The mass matrix is not positive definite in {100.0 * seen.indefinite_share:.0f} % of all postures "
            f"(smallest eigenvalue {seen.smallest_mass_eigenvalue:.3g}): no robot has these parameters."
        )
    if seen.negative:
        out.append(f"Friction or rotor inertia is negative: {', '.join(seen.negative)}.")
    lost = [way.name for way in ways if not way.passed]
    if lost:
        out.append(f"The model did not come through: {', '.join(lost)}.")
    return tuple(out)


@renamed(bandwidth="bandwidth_rad_s")
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
    """Judge `model` on a known `plant`, along a `reference` with `sample(t)`, for `duration` (s), every `step` (s).

    1. Torque prediction: the model's torque along the plant's motion against the plant's.
    2. Open loop: the plant's torques are played to the model from the same start, for `horizon` s (default: all).
    3. Feed-forward: PD with `gains` (default: for the plant at `bandwidth_rad_s`) and the model's torque of the
       reference, on the plant.
    4. Computed torque with the model at `bandwidth_rad_s`, on the plant.

    Errors of 3 and 4 are those of tracking. The plant's own motion is under PD with the same gains and its own
    feed-forward. A way in which the model runs away has no errors but a reason; other ways are not affected.
    """
    if not (duration > 0.0 and step > 0.0 and bandwidth_rad_s > 0.0 and (horizon is None or horizon > 0.0)):
        raise SteelyardError("duration, step, bandwidth and horizon must be positive.")
    pull = gains or PD.for_model(plant, bandwidth_rad_s=bandwidth_rad_s)
    start, speed, _ = (x[0] for x in reference.sample(np.zeros(1)))

    def on_plant(controller: Any) -> Simulation:
        return simulate(
            plant, controller, duration=duration, step=step, q0=start, dq0=speed, reference=reference, throw=False,
            bound=_LOST,
        )  # fmt: skip

    true = on_plant(FeedForward.from_gains(pull, plant))
    if not true.ok:
        raise SimulationError("The plant does not follow the reference under its own feed-forward; choose other gains.")
    wanted = reference.sample(true.t)[0]
    joints = [j.kind for j in plant.robot.joints]
    length = "rad" if all(kind == "revolute" for kind in joints) else "rad, m"
    torque = model.torque(true.q, true.dq, true.ddq)
    computed = ComputedTorque.for_model(model, bandwidth_rad_s=bandwidth_rad_s)
    return Validation(
        Way.compared("torque prediction", "N m, N" if "," in length else "N m", true.tau, torque),
        _way("open loop", length, lambda: _open_loop(model, true, horizon, step)),
        _way("feed-forward", length, lambda: _followed(on_plant(FeedForward.from_gains(pull, model)), wanted)),
        _way("computed torque", length, lambda: _followed(on_plant(computed), wanted)),
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
    return _followed(run, true.q[:count])


def _followed(run: Simulation, wanted: Array) -> tuple[Array, Array]:
    """The positions that were wanted, and those of the `run`; refused where it did not come through."""
    if not run.ok:
        what = "diverged" if run.outcome[0] == Ending.DIVERGED else "lost its positive definite mass matrix"
        raise SimulationError(f"It {what} at t = {run.stopped[0]:.3g} s.")
    return wanted, run.q
