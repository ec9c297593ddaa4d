"""`BetweenChoice`: the behaviour of the torque between samples, detected from a log.

A held torque acts half a sample after its time stamp on average, an averaged one half a sample before. The delay of the
torque behind the motion is known to some hundredths of a millisecond (`regression/delay.py`), which identifies one of
three behaviours if there is no other delay. Any other delay is removed if all joints share it (`choose_cutoff`), or
stated with `--delay`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.parameters.terms import Terms, identification_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.delay import DelayEstimate, estimate_delay
from steelyard.signals.between import LAG_SAMPLES, TorqueBetween
from steelyard.signals.prepare import Motion

# Standard deviation of other delays, from clocks and drives, in samples.
_OTHER_DELAYS = 0.05
# A delay matches none of the three beyond this number of standard errors and this fraction of a sample; a larger error
# than this fraction does not distinguish them.
_ERRORS, _FAR = 2.0, 0.1
# Probability required for a choice.
_SURE = 0.95


@dataclass(frozen=True, eq=False)
class BetweenChoice:
    """The behaviour of the torque between samples.

    Attributes:
        name: "held", "sampled" or "averaged"; "auto" if the log does not show it.
        sure: Probability of the choice among the three; 1 if stated.
        stated: Whether the user stated it.
        delay: Delay that led to the choice; None: stated, or not identifiable from the motion.
    """

    name: TorqueBetween
    sure: float = 1.0
    stated: bool = False
    delay: DelayEstimate | None = None

    @property
    def text(self) -> str:
        """Describe the choice in a sentence."""
        if self.stated:
            return f"The torque is {self.name} between samples, as stated."
        if self.delay is None:
            return "The log does not show how the torque runs between samples."
        lag = f"a delay of {1e3 * self.delay.delay_s:.3f} ± {1e3 * self.delay.error_s:.3f} ms"
        if self.name == "auto":
            return f"The log does not show how the torque runs between samples: {lag} matches none of the three ways."
        return f"The torque is {self.name} between samples ({100 * self.sure:.0f} % sure, by {lag})."

    def to_json(self) -> dict[str, Any]:
        """Convert to the form of `result.json`."""
        made: dict[str, Any] = {"name": self.name, "sure": self.sure, "stated": self.stated}
        if self.delay is not None:
            made |= {"delay_s": self.delay.delay_s, "delay_error_s": self.delay.error_s}
        return made


def delay_of(base: BaseParameters, motions: tuple[Motion, ...], start_s: float = 0.0) -> DelayEstimate | None:
    """Estimate the delay of the torques with friction without memory, which could otherwise imitate a delay.

    Args:
        base: Base parameters of the robot with its terms.
        motions: Prepared motions.
        start_s: First guess [s].
    """
    if base.terms.history:
        plain = tuple(term for term in base.terms.terms if not term.history)
        usual = identification_terms(base.robot)
        base = base_parameters(base.robot, usual if len(plain) < len(usual.terms) else Terms(base.robot, plain))
    return estimate_delay(base.structure.dynamics, base, motions, start_s)


def choose_between(delay: DelayEstimate | None, period: float) -> BetweenChoice:
    """Choose the behaviour of the torque between samples from its delay behind the motion.

    Args:
        delay: Result of `delay_of` for motions whose torque is treated as sampled.
        period: Time between samples [s].
    """
    if delay is None:
        return BetweenChoice("auto", 0.0)
    doubt = float(np.hypot(delay.error_s, _OTHER_DELAYS * period))
    far = {name: abs(delay.delay_s - lag * period) / doubt for name, lag in LAG_SAMPLES.items()}
    best = min(far, key=lambda name: far[name])
    weights = {name: float(np.exp(-0.5 * (x**2 - far[best] ** 2))) for name, x in far.items()}
    sure = 1.0 / sum(weights.values())
    names: dict[str, TorqueBetween] = {"held": "held", "sampled": "sampled", "averaged": "averaged"}
    near = far[best] * doubt < max(_ERRORS * delay.error_s, _FAR * period)
    fits = near and sure > _SURE and delay.error_s < _FAR * period
    return BetweenChoice(names[best] if fits else "auto", sure if fits else 0.0, delay=delay)
