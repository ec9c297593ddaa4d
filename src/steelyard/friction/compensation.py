"""Known friction: curves are read from a run folder, subtracted from the torque, and added to the model again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.untrusted_files import read_json
from steelyard.parameters.friction import SMOOTHING_SPEED, FrictionTable
from steelyard.parameters.term import Term, make_term
from steelyard.parameters.terms import DEFAULT_TERMS, coupled_drives, terms, terms_named
from steelyard.regression.schemes.still import Curve, friction_coordinate
from steelyard.robot.robot import MOST_JOINTS, Robot

if TYPE_CHECKING:
    from steelyard.friction.laws import FittedLaw
    from steelyard.friction.measure import FrictionCurves

CurvesLike = Union["FrictionCurves", Mapping[str, Curve]]
# Tables extrapolate the law of a curve up to this multiple of the fastest measured speed.
_EXTRAPOLATION = 3.0
_KNOTS = 24
_OPTIONAL = ("shape", "load_gain", "temperature")


def read_friction(path: str | os.PathLike[str]) -> dict[str, FittedLaw]:
    """Read curves by joint from `path`, a folder that `steelyard friction … -o` wrote, or its result.json."""
    source = Path(path) / "result.json" if os.path.isdir(path) else Path(path)
    document = read_json(source, SteelyardError, "give a run of `steelyard friction`")
    entries = document.table(("joints",), others=True)["joints"].items("joint", MOST_JOINTS)
    return dict(_law(entry.table(("joint", "law", "coefficients", "covariance", "fastest"), _OPTIONAL, others=True))
                for entry in entries)  # fmt: skip


def _law(entry: dict[str, Field]) -> tuple[str, FittedLaw]:
    from steelyard.friction.laws import FittedLaw, law_named

    law, more = law_named(entry["law"].text()), dict[str, Any]()

    def by_symbol(table: Field) -> Array:
        fields = table.table(law.symbols, others=True)
        return np.array([fields[s].number() for s in law.symbols])

    if "temperature" in entry:
        warm = entry["temperature"].table(("slopes", "reference", "range"), others=True)
        more["slopes"], more["reference"] = by_symbol(warm["slopes"]), warm["reference"].number()
        more["range"] = tuple(warm["range"].vector(2))
    covariance = entry["covariance"].array(None, None, missing=np.nan)
    if covariance.shape[0] != covariance.shape[1] or len(covariance) < len(law.symbols):
        entry["covariance"].fail(f"must be a square matrix of at least {len(law.symbols)} rows.")
    return entry["joint"].text(), FittedLaw(
        law,
        by_symbol(entry["coefficients"]),
        covariance,
        entry["shape"].positive() if "shape" in entry else 1.0,
        load_gain=entry["load_gain"].number() if "load_gain" in entry else 0.0,
        fastest=entry["fastest"].positive(),
        **more,
    )


@dataclass(frozen=True, eq=False)
class SmoothedCurve:
    """A friction curve with a smoothed jump at zero, tanh(|v|/smooth), as dry friction in an identification.

    Attributes:
        curve: Friction over velocity.
        smooth: Smoothing speed [rad/s or m/s]; 0 keeps the jump.
    """

    curve: Curve
    smooth: float

    def __call__(self, v: Array) -> Array:
        """Compute friction [N m or N] at velocities `v` [rad/s or m/s]."""
        sharp = np.asarray(v) != 0.0 if self.smooth == 0.0 else np.tanh(np.abs(v) / self.smooth)
        return np.asarray(sharp * self.curve(v))

    @property
    def fastest(self) -> float:
        top = getattr(self.curve, "fastest", np.inf)
        return float(top) if np.isfinite(top) else 10.0


def smoothed_curves(robot: Robot, friction: CurvesLike | None) -> dict[str, SmoothedCurve]:
    """Smooth curves at zero velocity, where filters hide the direction.

    Args:
        robot: Robot.
        friction: Curves by joint or motor.
    """
    if friction is None:
        return {}
    curves: Mapping[str, Curve] = friction if isinstance(friction, Mapping) else friction.curves
    kinds = {name: "revolute" if friction_coordinate(robot, name).revolute else "prismatic" for name in curves}
    return {name: SmoothedCurve(curve, SMOOTHING_SPEED[kinds[name]]) for name, curve in curves.items()}


def remaining_terms(robot: Robot, known: Mapping[str, SmoothedCurve]) -> Sequence[str | Term]:
    """Return the default terms without known friction.

    A joint does not need friction terms if the friction of all its motors is known.

    Args:
        robot: Robot.
        known: Known curves by joint or motor.
    """
    coupling, motors = robot.transmission, [name for name in known if name not in robot.joint_names]
    others = [name for name in robot.joint_names if name not in known]
    more: list[Term] = []
    if motors and coupling is not None:
        unknown = [k for k, name in enumerate(coupling.motors) if name not in known]
        free = np.any(coupling.matrix[unknown] != 0.0, axis=0)
        others = [name for name in others if free[robot.joint_index(name)]]
        more = _remaining_of_drives(robot, known)
    if len(others) == robot.dof:
        return (*DEFAULT_TERMS, *more)
    # A curve replaces all friction terms. The offset stays, since it may be an error of the sensor.
    out: list[str | Term] = []
    for name in DEFAULT_TERMS:
        if not make_term(name).dissipative:
            out.append(name)
        elif others:
            out += terms_named(robot, name, tuple(others))
    return [*out, *more]


def _remaining_of_drives(robot: Robot, known: Mapping[str, SmoothedCurve]) -> list[Term]:
    """Return the terms of drives that move several joints, without known friction."""
    out: list[Term] = []
    for term in coupled_drives(robot):
        remaining = tuple(name for name in term.where or () if not (term.dissipative and name in known))
        if remaining:
            out.append(replace(term, where=remaining))
    return out


def add_friction(model: Model, known: Mapping[str, SmoothedCurve]) -> Model:
    """Add known friction to a model as tables, so that it predicts and exports the whole torque.

    Args:
        model: Model without this friction.
        known: Known curves by joint or motor.
    """
    if not known:
        return model
    tables: list[Term] = []
    values: list[Array] = []
    for name, curve in known.items():
        speeds = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, _KNOTS), [_EXTRAPOLATION]]) * curve.fastest
        on: Any = friction_coordinate(model.robot, name).side
        tables.append(FrictionTable(on=on, where=(name,), speeds=tuple(speeds), smooth=curve.smooth))
        at = np.concatenate([[1e-9 * curve.fastest], speeds[1:]])
        # The negative side of a table is a magnitude, to be multiplied by the direction.
        values += [np.asarray(curve.curve(at)), -np.asarray(curve.curve(-at))]
    bound = terms(model.robot, *model.terms.terms, *tables)
    return Model(model.robot, bound, np.concatenate([model.theta, *values]))
