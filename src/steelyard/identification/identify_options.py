"""`IdentifyOptions`: all options of `identify`, for Python, the command line and the studio's form."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import verb_option, word_list
from steelyard.signals.between import as_torque_between
from steelyard.signals.prepare import Preparation, as_velocity

if TYPE_CHECKING:
    from steelyard.estimation.simulation_error.control_loop import ControlLoop
    from steelyard.friction.compensation import CurvesLike
    from steelyard.parameters.terms import TermsLike
    from steelyard.regression.schemes import Scheme

# Options that need log files.
OF_FILES = ("period", "holdout", "holdout_blocks")


def _curves(flag: str, folder: str) -> Any:
    from steelyard.friction.compensation import read_friction

    return read_friction(folder)


@short_repr
@dataclass(frozen=True, eq=False, kw_only=True)
class IdentifyOptions:
    """Options of `identify`.

    Attributes:
        terms: Joint terms, by name ("viscous,coulomb", or a list) or as objects; no search follows. Default: rotor,
            viscous, Coulomb and offset, and the terms that a search on the identification logs adds.
        scheme: Form of the equations: "dynamic" (τ = Y θ), "filtered-dynamic", "momentum", "energy", "power" or
            "filtered-power", with options as in "filtered-dynamic:cutoff_hz=1.5,order=2", or an object.
        estimator: Name from `steelyard.estimation.ESTIMATORS`, with options as in "ekf:start=prior" (see
            docs/how-to-choose.md).
        physical: Whether the result must be physically possible; otherwise it is the free fit.
        prior: "nominal" (inertias of the description, if given and possible) or "none".
        cutoff_hz: Cut-off of the low-pass filter [Hz]; None: automatic.
        score_cutoff_hz: Cut-off of the filter of the scores [Hz]; default: the cut-off of the fit.
        velocity: "measured", "differentiated" (from positions) or "auto" (the better one).
        mask: Speed below which the rows of a joint are ignored [rad/s, m/s].
        delay: Delay of the torques after the positions [s]; None: estimated.
        torque_between: Course of the torque between samples: "held", "sampled", "averaged" or "auto" (estimated).
        period: Period of a periodic motion [s] over which the identification logs are averaged; for log files.
        holdout: Share at the end of each log to hold out for validation; for log files.
        holdout_blocks: "seconds:every" holds out every n-th block of this length; for log files.
        significant: Whether to remove insignificant base parameters one by one. With `physical=False` this reduced fit
            is delivered. A physically possible model has all parameters, and the reduced fit is in `reduced`.
        plain: Whether to use the default terms without a search.
        tune: Whether to search for further terms if `terms` is given.
        known_friction: Friction curves by joint or motor (`measure_friction`, or functions of velocity). They are
            subtracted from the torque, and replace the default friction terms in the model as tables.
        controller: Controller of the logged robot, for estimators that simulate the closed loop: a `ControlLoop` or a
            file (`read_control_loop`).
        preparation: Filter, derivatives and masks instead of the five options of the signals.
        check: Whether to check the logs (`check_log`) and test the assumptions of the fit.
        files: Whether to fit the best model that each robot file format can store, and to score the files.
    """

    terms: TermsLike | None = verb_option(
        None, "Joint terms; default: {default_terms:,}.", "T,…", parse=word_list, complete=",terms", keys=("terms",)
    )
    scheme: str | Scheme = verb_option(
        "dynamic", "Scheme: {schemes:or}; options as name:key=value.", "S", complete="schemes"
    )
    estimator: str = verb_option("wls", "{estimators}", "E", complete="estimators")
    physical: bool = verb_option(True, "Physically consistent, or unconstrained fit.", flags=("--physical/--free",))
    prior: str = verb_option("nominal", "Prior: nominal (inertias of the description) or none.", "P")
    cutoff_hz: float | None = verb_option(
        None, "Low-pass cut-off of the fit; default by a rule.", "HZ",
        name="cutoff", kind=float, label="Cut-off of the fit", unit="Hz",
    )  # fmt: skip
    score_cutoff_hz: float | None = verb_option(
        None, "Low-pass cut-off of the scores; default: that of the fit.", "HZ",
        name="score_cutoff", kind=float, label="Cut-off of the scores", unit="Hz",
    )  # fmt: skip
    velocity: str = verb_option(
        "auto", "Velocity: measured, differentiated (from positions), or auto: the better one.", "V"
    )
    mask: float = verb_option(
        0.0, "Ignore rows slower than this, rad/s or m/s.", "SPEED",
        label="Ignore samples slower than", unit="rad/s, m/s",
    )  # fmt: skip
    delay: float | None = verb_option(
        None, "Delay of torques behind positions, s; default: estimated from the logs.", "S",
        kind=float, label="Delay of the torques", unit="s",
    )  # fmt: skip
    torque_between: str = verb_option(
        "auto", "Torque between samples: held, sampled, averaged, or auto.", "W", flags=("--torque-between",)
    )
    period: float | None = verb_option(
        None, "Average a periodic motion over periods of S seconds.", "S",
        kind=float, label="Average over periods of", unit="s",
    )  # fmt: skip
    holdout: float | None = verb_option(None, "Last part of each log as hold-out, e.g. 0.3.", "SHARE", kind=float)
    holdout_blocks: str = verb_option("", "Every K-th block of S seconds as hold-out, e.g. 0.5:3.", "S:K")
    significant: bool = verb_option(
        False, "Remove insignificant parameters, and report the effect.", flags=("--significant",)
    )
    plain: bool = verb_option(False, "Use the default terms without a search on LOG….", flags=("--plain",))
    tune: bool = verb_option(
        False, "Search for more terms than --terms on LOG…; without --terms this is the default.", flags=("--tune",)
    )
    known_friction: CurvesLike | None = verb_option(
        None, "Run of `steelyard friction`; its curves are subtracted from the torque.", "RUN",
        name="friction", parse=_curves,
    )  # fmt: skip
    controller: str | os.PathLike[str] | ControlLoop | None = verb_option(
        None, "Controller of the robot (YAML, TOML), for didim, cloe, ….", "F", keys=("controller",)
    )
    preparation: Preparation | None = None
    check: bool = True
    files: bool = True

    def prepared(self) -> Preparation:
        """Return the preparation of the signals."""
        return self.preparation or Preparation(
            cutoff_hz=self.cutoff_hz,
            velocity=as_velocity(self.velocity),
            mask=self.mask,
            delay=self.delay,
            torque_between=as_torque_between(self.torque_between),
        )
