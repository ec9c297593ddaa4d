"""`ExciteOptions`: all options of `excite`, for Python, the command line, the studio's form and the project file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import ExcitationError, SteelyardError
from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import numbers, per_joint, verb_option, word_list, words

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from steelyard.dynamics.model import Model
    from steelyard.excitation.constraints import Constraint, Limits
    from steelyard.excitation.criteria import Criterion
    from steelyard.excitation.search import SearchSettings
    from steelyard.excitation.search_problem import FreeSpace
    from steelyard.excitation.trajectories import Family
    from steelyard.ground.arrays import Array
    from steelyard.parameters.terms import TermsLike
    from steelyard.regression.factor import Factor

FAMILIES = ("fourier", "bspline", "quintic", "acceleration")
OPTIMISERS = ("gradient", "ga", "cma")
_MOST_SAMPLES = 1e6


def _families(flag: str, text: str) -> str | dict[str, str]:
    """Parse one family for all joints, or families by joint."""
    if "=" not in text:
        return text
    pairs = [word.partition("=") for word in words(text)]
    if any(not joint or not kind for joint, _, kind in pairs):
        raise SteelyardError(f"{flag} is '{text}'; write one family, or comma-separated JOINT=FAMILY pairs.")
    return {joint: kind for joint, _, kind in pairs}


@short_repr
@dataclass(frozen=True, eq=False, kw_only=True)
class ExciteOptions:
    """Options of `excite` and of the functions around it.

    Attributes:
        torque_margin: Share of the torque limits reserved for errors of the nominal model.
        duration: Duration of the motion [s].
        rate: Sampling rate [Hz].
        harmonics: Harmonics of a Fourier series that starts and ends at rest.
        family: Other motions than a Fourier series: "bspline", "quintic" or "acceleration" of as many `harmonics`
            (spans, knots), names of families by joint (Fourier series for the others), a family, or one per joint.
        scheme: "dynamic" (torque rows), "momentum" or "energy" (integrals over windows).
        window: Length of the windows [s] (default: one sample).
        criterion: "cond", "information", "frobenius", "d", "a", "e", "sigma", or a `Criterion`.
        scaling: Scaling of the columns: "natural", "unit" (norms), or "orthonormal" (basis of all identifiable
            combinations).
        weights: Weights of the equations: numbers (1/σ of each joint), "torque" (Pedrocchi 2013 as printed) or
            "torque-inverse" (the normalisation that the paper describes).
        terms: Joint terms to be identified with the links, "viscous,coulomb" or objects (default none).
        joints: The joints that move (default all); the others stay at `posture`, or at an optimised position.
        equations: The joints whose torque rows count (default all used ones).
        parameters: Design for these base parameters alone; the others are known.
        wanted: Only these parameters count, but the others are estimated with them.
        posture: Preferred posture in the middle of the motion, one position per joint [rad, m]; exact for joints that
            do not move.
        box: (x0, x1, y0, y1, z0, z1) [m] in the base frame: the origin of link `frame` stays inside.
        frame: Link of the box (default: the last one).
        floor: Smallest height of all link origins [m].
        collision: Keep bodies `clearance` apart, by the collision geometry in the robot's own URDF: True, False, or
            None: if it has any (`notes` of the plan name unchecked bodies). Needs Pinocchio.
        clearance: Smallest distance of bodies [m]; bodies that are always nearer must not touch.
        srdf: MoveIt's file of the robot: pairs of bodies that it disables are left out.
        packages: Folders with `package://` meshes (default: those above the robot's file).
        bandwidth_hz: Highest allowed frequency of a harmonic [Hz].
        optimiser: "gradient", or a population: "ga" (genetic) or "cma" (covariance adaptation, CMA-ES).
        via_points: Number of via-points of programs in `box` or in joint space, for populations; 0: the family's
            coefficients.
        generations: Number of generations of a population.
        population: Number of motions in a generation.
        patience: Number of generations with a gain below 1 % after which a population stops (default: never).
        seed: Seed of all random numbers; the same seed gives the same motion.
        limits: `q` (± or pairs), `dq`, `ddq`, `jerk`, `tau`, `power`, one number or one per joint; the robot's own
            limits replace missing ones (see `default_limits`; acceleration: three times the velocity limit per second).
        prior: Known information: the factor of an earlier log, or a matrix that is added to WᵀW.
        long_windows: Let all windows start at the beginning.
        model: Model for torque and power limits (default: the robot's nominal model, if inertias are known).
        regions: Further (points, planes); the points must stay inside.
        constraints: Further constraints, or functions that make them for the families (`collision(…)`).
        search: Effort of the search by gradients.
    """

    torque_margin: float = verb_option(
        0.0, "Share of the torque limits to leave unused.", "SHARE", label="Torque margin", unit="share"
    )
    duration: float = verb_option(10.0, "Duration of the motion, s.", "S", label="Length", unit="s")
    rate: float = verb_option(100.0, "Sampling rate of the motion, Hz.", "HZ", label="Sample rate", unit="Hz")
    harmonics: int = verb_option(
        5, "Harmonics of a Fourier series, or spans or knots of other families.", "N", label="Harmonics"
    )
    family: str | Mapping[str, str] | Family | Sequence[Family] | None = verb_option(
        "fourier", "Trajectories: {families:or}; or by joint: q1=quintic,q3=bspline.", "F",
        parse=_families, complete="families",
    )  # fmt: skip
    scheme: str = verb_option("dynamic", "Rows of the regressor: dynamic, momentum or energy (integrals).", "S")
    window: float | None = verb_option(None, "Integration time of momentum and energy, s.", "S", kind=float)
    criterion: str | Criterion = verb_option(
        "cond", "Criterion: {criteria:or}.", "C", complete="criteria", label="Criterion"
    )
    scaling: str = verb_option("natural", "Scaling of the columns: natural, unit or orthonormal.", "S")
    weights: str | ArrayLike | None = verb_option(
        None, "Weights of the rows: torque, torque-inverse, or 1/σ per joint.", "W",
        parse=lambda flag, text: text if text.startswith("torque") else per_joint(flag, text),
    )  # fmt: skip
    terms: TermsLike | None = verb_option(
        None, "Joint terms in addition to the links; 'default': those of identify.", "T,…",
        parse=word_list, complete=",terms", keys=("terms",), label="Parameters to excite",
    )  # fmt: skip
    joints: Sequence[str] | None = verb_option(
        None, "Joints that move in this motion; the others stand still.", "A,B,…", name="moving", parse=word_list
    )
    equations: Sequence[str] | None = verb_option(None, "Joints whose torque rows are used.", "A,B,…", parse=word_list)
    parameters: Sequence[str] | None = verb_option(
        None, "Design for these base parameters only.", "P,…", parse=word_list
    )
    wanted: Sequence[str] | None = verb_option(
        None, "Optimise for these; the others are estimated as well.", "P,…", parse=word_list
    )
    posture: ArrayLike | None = verb_option(None, "Centre of the motion, rad (m).", "Q,…")
    box: Sequence[float] | None = verb_option(
        None,
        "Box that the frame must not leave, m.",
        "X0,X1,Y0,Y1,Z0,Z1",
        parse=lambda flag, text: numbers(flag, text, 6),
    )
    frame: str = verb_option("", "Frame for --box; default: last link.", "LINK", label="Link in the box")
    floor: float | None = verb_option(
        None, "Lowest height of any link's origin, m.", "Z", kind=float, label="Floor height", unit="m"
    )
    collision: bool | None = verb_option(
        False, "Avoid collisions of bodies; default: if the file has bodies.", kind=bool | None, text=None,
        flags=("--collision/--no-collision",), label="Avoid self-collisions",
    )  # fmt: skip
    clearance: float = verb_option(0.02, "Smallest distance between bodies, m.", "M", label="Clearance", unit="m")
    srdf: str | Path | None = verb_option(None, "MoveIt's file with pairs of bodies to ignore.", "FILE")
    packages: Sequence[str | Path] = verb_option(
        (), "Folders for package:// meshes.", "DIR,…", kind=str, text="", parse=word_list, keys=("packages",)
    )
    bandwidth_hz: float | None = verb_option(
        None, "Highest frequency of a harmonic, Hz.", "HZ", name="bandwidth", kind=float
    )
    optimiser: str = verb_option(
        "gradient", "Optimiser: {optimisers:or}.", "O", complete="optimisers", label="Optimiser"
    )
    via_points: int = verb_option(0, "Optimise K via-points (ga, cma), in --box or in joint space.", "K")
    generations: int = verb_option(100, "Generations of ga and cma.", "N", label="Generations")
    population: int = verb_option(150, "Population of ga and cma.", "N", label="Population")
    patience: int | None = verb_option(None, "Stop ga and cma after N generations without improvement.", "N", kind=int)
    seed: int = verb_option(0, "The same seed gives the same motion.", "N", label="Seed")
    limits: Mapping[str, ArrayLike] | Limits | None = None
    prior: Array | Factor | None = None
    long_windows: bool = False
    model: Model | None = None
    regions: Sequence[FreeSpace] = ()
    constraints: Sequence[Constraint | Callable[[Sequence[Family]], Constraint]] = ()
    search: SearchSettings | None = None

    def check(self) -> None:
        """Refuse numbers that no search can use."""
        from steelyard.ground.field import Field

        if not (0.0 < self.duration < float("inf") and 0.0 < self.rate < float("inf")):
            raise ExcitationError(
                f"duration is {self.duration:g} s and rate {self.rate:g} Hz; both must be positive and finite."
            )
        if self.duration * self.rate > _MOST_SAMPLES:
            raise ExcitationError(
                f"{self.duration:g} s at a rate of {self.rate:g} Hz are more than {_MOST_SAMPLES:g} samples."
            )
        if self.duration * self.rate < 8:
            raise ExcitationError(
                f"{self.duration:g} s at {self.rate:g} Hz are too few samples; give a longer motion or a higher rate."
            )
        most = {"harmonics": (1, 1000), "via_points": (0, 1000), "seed": (0, 2**63),
                "generations": (1, 10**6), "population": (1, 10**6)}  # fmt: skip
        for name, (low, high) in most.items():
            Field(getattr(self, name), name, error=ExcitationError).whole(low, high)
        for name in ("floor", "clearance", "torque_margin"):
            Field(getattr(self, name) or 0.0, name, error=ExcitationError).number()
