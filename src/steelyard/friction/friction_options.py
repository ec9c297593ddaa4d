"""`FrictionOptions`: all options of `measure_friction`, for Python and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import verb_option, word_list

if TYPE_CHECKING:
    from steelyard.dynamics.model import Model
    from steelyard.friction.coordinates import FrictionSide
    from steelyard.signals.prepare import Preparation


@short_repr
@dataclass(frozen=True, eq=False, kw_only=True)
class FrictionOptions:
    """Options of `measure_friction`.

    Attributes:
        joints: Names of the joints, or of the motors if `on` is "drive"; default: all that move.
        on: "joint", or "drive" for a robot with a transmission: friction over the speed of each motor's output, which
            may move several joints (IRp-6: motor 3 turns by q2 + q3).
        how: "plateaus" averages intervals of constant speed, "table" fits rigid body and friction together; "auto"
            uses plateaus where there are enough.
        gravity: Removal of gravity from plateaus: "pairs", "symmetry" (about `middle`), "model" or "none"; "auto": the
            model if there is one, else pairs.
        middle: Position about which the gravity torque is odd [rad or m].
        model: Identified model whose gravity torque is subtracted.
        law: Name of a law, or "auto" to choose one by cross-validation.
        loaded: Let dry friction increase with the load on the gear (needs `model`).
        preparation: Preparation of the signals; None for the default one.
    """

    joints: Sequence[str] = verb_option(
        (), "Joints to measure (motors with --on drive); default: all that move.", "A,B,…",
        name="only", kind=str, text="", parse=word_list,
    )  # fmt: skip
    on: FrictionSide = verb_option("joint", "joint, or drive for motors that move several joints.", "SIDE")
    how: str = verb_option("auto", "Method: plateaus, table (any motion), or auto.", "HOW")
    gravity: str = verb_option(
        "auto", "Gravity compensation of plateaus: pairs, symmetry, model, none, auto.", "BY", name="gravity_by"
    )
    middle: float | None = verb_option(
        None, "For symmetry: position about which gravity is an odd function.", "POS", kind=float
    )
    model: Model | None = verb_option(None, "Run folder of an identified model.", "RUN")
    law: str = verb_option("auto", "Friction law; default: best fit.", "LAW")
    loaded: bool = verb_option(False, "Fit load-dependent dry friction (needs --model).", flags=("--loaded",))
    preparation: Preparation | None = None
