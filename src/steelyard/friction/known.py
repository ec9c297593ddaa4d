"""Friction that was measured before: read from a run folder, taken off the torque, and put back into the model."""

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
from steelyard.ground.untrusted import read_json
from steelyard.parameters.friction import SMOOTHING_SPEED, FrictionTable
from steelyard.parameters.term import Term, make_term
from steelyard.parameters.terms import DEFAULT_TERMS, coupled_drives, terms, terms_named
from steelyard.regression.schemes.still import Curve, friction_coordinate
from steelyard.robot.robot import MOST_JOINTS, Robot

if TYPE_CHECKING:
    from steelyard.friction.laws import FittedLaw
    from steelyard.friction.measure import FrictionCurves

KnownCurves = Union["FrictionCurves", Mapping[str, Curve]]
# Beyond the fastest measured speed a curve goes on as its law does, up to this many times that speed.
_BEYOND = 3.0
_KNOTS = 24
_MORE = ("shape", "load_gain", "temperature")


def read_friction(path: str | os.PathLike[str]) -> dict[str, FittedLaw]:
    """The curves, by joint, of a folder `path` that `steelyard friction … -o` wrote, or of its result.json."""
    source = Path(path) / "result.json" if os.path.isdir(path) else Path(path)
    whole = read_json(source, SteelyardError, "give a run of `steelyard friction`")
    found = whole.table(("joints",), others=True)["joints"].items("joint", MOST_JOINTS)
    return dict(_law(entry.table(("joint", "law", "coefficients", "covariance", "fastest"), _MORE, others=True))
                for entry in found)  # fmt: skip


def _law(entry: dict[str, Field]) -> tuple[str, FittedLaw]:
    from steelyard.friction.laws import FittedLaw, law_named

    law, more = law_named(entry["law"].text()), dict[str, Any]()

    def by_symbol(table: Field) -> Array:
        given = table.table(law.symbols, others=True)
        return np.array([given[s].number() for s in law.symbols])

    if "temperature" in entry:
        warm = entry["temperature"].table(("slopes", "reference", "range"), others=True)
        more["slopes"], more["reference"] = by_symbol(warm["slopes"]), warm["reference"].number()
        more["range"] = tuple(warm["range"].vector(2))
    covariance = entry["covariance"].array(None, None, missing=np.nan)
    if covariance.shape[0] != covariance.shape[1] or len(covariance) < len(law.symbols):
        entry["covariance"].fail(f"is no square matrix of {len(law.symbols)} rows or more.")
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
class Rounded:
    """A curve whose jump at zero is rounded off like that of dry friction in an identification: tanh(|v|/smooth).

    With `smooth` 0 (rad/s, m/s) it jumps.
    """

    curve: Curve
    smooth: float

    def __call__(self, v: Array) -> Array:
        """Friction (N m, N) at velocities `v` (rad/s, m/s)."""
        sharp = np.asarray(v) != 0.0 if self.smooth == 0.0 else np.tanh(np.abs(v) / self.smooth)
        return np.asarray(sharp * self.curve(v))

    @property
    def fastest(self) -> float:
        top = getattr(self.curve, "fastest", np.inf)
        return float(top) if np.isfinite(top) else 10.0


def known_curves(robot: Robot, given: KnownCurves | None) -> dict[str, Rounded]:
    """Curves `given` for joints or motors of `robot`, rounded off where filters hide a direction."""
    if given is None:
        return {}
    curves: Mapping[str, Curve] = given if isinstance(given, Mapping) else given.curves
    kinds = {name: "revolute" if friction_coordinate(robot, name).revolute else "prismatic" for name in curves}
    return {name: Rounded(curve, SMOOTHING_SPEED[kinds[name]]) for name, curve in curves.items()}


def remaining_terms(robot: Robot, known: Mapping[str, Rounded]) -> Sequence[str | Term]:
    """The default terms of `robot` without friction where it is `known` already, by joint or motor.

    Nothing rubs on a joint besides its motors whose friction is known, if that of all of them is.
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
    # A curve stands in for all friction; an offset is left free, since it may be the sensor's.
    out: list[str | Term] = []
    for name in DEFAULT_TERMS:
        if not make_term(name).dissipative:
            out.append(name)
        elif others:
            out += terms_named(robot, name, tuple(others))
    return [*out, *more]


def _remaining_of_drives(robot: Robot, known: Mapping[str, Rounded]) -> list[Term]:
    """What drives that move several joints have of their own, less friction where it is known."""
    out: list[Term] = []
    for term in coupled_drives(robot):
        left = tuple(name for name in term.where or () if not (term.dissipative and name in known))
        if left:
            out.append(replace(term, where=left))
    return out


def with_known_friction(model: Model, known: Mapping[str, Rounded]) -> Model:
    """`model` with the `known` curves, by joint or motor, as tables: it has the whole torque, and exports it."""
    if not known:
        return model
    tables: list[Term] = []
    values: list[Array] = []
    for name, curve in known.items():
        speeds = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, _KNOTS), [_BEYOND]]) * curve.fastest
        on: Any = friction_coordinate(model.robot, name).side
        tables.append(FrictionTable(on=on, where=(name,), speeds=tuple(speeds), smooth=curve.smooth))
        at = np.concatenate([[1e-9 * curve.fastest], speeds[1:]])
        # A table's negative side is a magnitude: it is multiplied with the direction.
        values += [np.asarray(curve.curve(at)), -np.asarray(curve.curve(-at))]
    bound = terms(model.robot, *model.terms.terms, *tables)
    return Model(model.robot, bound, np.concatenate([model.theta, *values]))
