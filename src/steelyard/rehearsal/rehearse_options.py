"""`RehearseOptions`: all options of `rehearse`, for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import per_joint, verb_option

if TYPE_CHECKING:
    from steelyard.dynamics.model import Model
    from steelyard.excitation.constraints import Limits
    from steelyard.parameters.terms import TermsLike


@short_repr
@dataclass(frozen=True, eq=False, kw_only=True)
class RehearseOptions:
    """Options of `rehearse`.

    Attributes:
        terms: Joint terms of the robot and of the fit; default: rotor, viscous, Coulomb, offset.
        truth: "nominal", "perturbed" (a possible robot close to the nominal one), or a `Model` with the same terms.
        relative_std: Relative standard deviation of the parameters of a perturbed robot.
        limits: Limits of the design; default: those of the robot.
        noise: Standard deviation of the torque noise [N m or N], one number or one per joint; default: half a percent
            of the effort limits.
        rate: Sampling rate of the logs [Hz].
        passes: Number of times that each motion is played.
        seed: Seed of the first robot and of its noise.
        seeds: Number of robots, each with different parameters and noise.
        workers: Number of processes; None: one per core if there are enough robots.
        gpu: Simulate all robots at once on an NVIDIA GPU, which also computes their rows (extra `gpu`).
    """

    terms: TermsLike | None = None
    truth: str | Model = verb_option("perturbed", "True parameters: nominal or perturbed.", "T")
    relative_std: float = verb_option(0.2, "Relative standard deviation of the perturbation.", "SHARE", name="spread")
    limits: Limits | None = None
    noise: float | Sequence[float] | None = verb_option(
        None, "Torque noise, N m (N); default: 0.5 % of the limits.", "X[,…]", parse=per_joint
    )
    rate: float = verb_option(1000.0, "Sampling rate of the simulated log, Hz.", "HZ")
    passes: int = verb_option(1, "Number of times the motion is played.", "N")
    seed: int = verb_option(0, "Random seed of the first simulated robot and its noise.", "N")
    seeds: int = verb_option(5, "Number of simulated robots; all of them are evaluated.", "N")
    workers: int | None = verb_option(1, "Processes for many robots; default: one per core.", "N", kind=int, text=0)
    gpu: bool = verb_option(False, "Simulate all robots at once on an NVIDIA GPU.", flags=("--gpu",))
