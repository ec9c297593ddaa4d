"""`Load`: a body that a robot carries, with error bars, in the forms that people and robot makers use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.displayed import Displayed, Glance, NamedColumns, by_columns
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.files import csv_text
from steelyard.ground.numbers import with_error
from steelyard.ground.renamed import renamed
from steelyard.parameters.inertial import INERTIAL_NAMES, smallest_pseudo_eigenvalues
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import (
    LinkFrame,
    inertia_matrix,
    move_parameters,
    parameter_transfer,
    parameters_from_com,
    skew,
)

_MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@renamed(physically_consistent="possible")
@dataclass(frozen=True, eq=False, repr=False)
class Load(Displayed):
    """Ten inertial `parameters` of a body in `frame`, about its origin, with their `covariance`.

    `shown` tells which of the ten the motion determines. `degrees` of freedom are those of the t interval (infinite:
    the normal one). `notes` say what a user should know.
    """

    frame: str
    parameters: Array
    covariance: Array
    shown: tuple[bool, ...] = (True,) * 10
    degrees: float = np.inf
    boundary: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("parameters", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def glance(self) -> Glance:
        where = ", ".join(with_error(1000.0 * x, 1000.0 * e) for x, e in
                          zip(self.center_of_gravity, self.center_of_gravity_error, strict=True))  # fmt: skip
        mass = with_error(self.mass, self.mass_error)
        kind: Any = "warning" if self.notes or not self.possible else "good"
        return Glance(kind, f"{mass} kg at ({where}) mm in frame '{self.frame}'", self.notes)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Mass, centre of gravity and inertia about it ("load"); the ten about the frame's origin ("parameters")."""
        return {"load": self._columns_for_makers, "parameters": self._ten_columns}

    def _columns_for_makers(self) -> NamedColumns:
        rows = [["mass", "kg", self.mass, self.mass_error]]
        errors = zip(self.center_of_gravity, self.center_of_gravity_error, strict=True)
        rows += [[f"c{axis}", "m", x, e] for axis, (x, e) in zip("xyz", errors, strict=True)]
        inertia = zip(_MOMENTS, ENTRIES, self.inertia_error, strict=True)
        rows += [[name, "kg m²", self.inertia[place], error] for name, place, error in inertia]
        return by_columns(("name", "unit", "value", "standard_error"), rows)

    def _ten_columns(self) -> NamedColumns:
        return {
            "name": INERTIAL_NAMES,
            "unit": ("kg", *["kg m"] * 3, *["kg m²"] * 6),
            "value": self.parameters,
            "standard_error": self.standard_errors,
            "shown": self.shown,
        }

    # ---------------------------------------------------------------- what it is

    @property
    def mass(self) -> float:
        return float(self.parameters[0])

    @property
    def center_of_gravity(self) -> Array:
        """In the frame, m."""
        return self.parameters[1:4] / self.mass

    @property
    def inertia(self) -> Array:
        """The tensor about the centre of gravity, axes parallel to the frame's, kg m²."""
        return about_com(self.parameters)

    @property
    def possible(self) -> bool:
        """Whether a body can have these parameters: its pseudo-inertia is positive definite."""
        return bool(smallest_pseudo_eigenvalues(self.parameters)[0] > 0.0)

    # ---------------------------------------------------------------- how well it is known

    @property
    def standard_errors(self) -> Array:
        """Of the ten parameters."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def mass_error(self) -> float:
        return float(self.standard_errors[0])

    @property
    def center_of_gravity_error(self) -> Array:
        return self.errors_of(lambda p: p[1:4] / p[0])

    @property
    def inertia_error(self) -> Array:
        """Of Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of gravity."""
        return self.errors_of(lambda p: np.array([about_com(p)[ij] for ij in ENTRIES]))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the mass, kg, at `level` (of 1)."""
        from scipy.stats import norm, t

        low = 0.5 * (1.0 + level)
        factor = float(norm.ppf(low) if np.isinf(self.degrees) else t.ppf(low, self.degrees))
        return self.mass - factor * self.mass_error, self.mass + factor * self.mass_error

    def errors_of(self, what: Callable[[Array], Array]) -> Array:
        """Standard errors of `what`, a function of the ten parameters, to first order."""
        steps = 1e-6 * np.maximum(np.abs(self.parameters), 1e-3)
        jacobian = np.column_stack(
            [(what(self.parameters + d) - what(self.parameters - d)) / (2.0 * s)
             for s, d in zip(steps, np.diag(steps), strict=True)]
        )  # fmt: skip
        return np.sqrt(np.maximum(np.diag(jacobian @ self.covariance @ jacobian.T), 0.0))

    # ---------------------------------------------------------------- elsewhere

    def seen_from(self, robot: Robot, frame: str) -> Load:
        """The same load in another `frame` of the same link of `robot`."""
        transfer = between(robot.frame(self.frame), robot.frame(frame))
        covariance = transfer @ self.covariance @ transfer.T
        return replace(self, frame=frame, parameters=transfer @ self.parameters, covariance=covariance)

    def attached(self, robot: Robot) -> Robot:
        """`robot` while it carries this load; the link it hangs on must have a known inertia."""
        place = robot.frame(self.frame)
        blocks = robot.inertial_parameters.reshape(-1, 10).copy()
        blocks[place.host] += between(place, own_frame(robot.links[place.host], place.host)) @ self.parameters
        return robot.with_inertial_parameters(blocks)

    # ---------------------------------------------------------------- written down

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval()
        return {
            "frame": self.frame,
            "mass": {"value": self.mass, "standard_error": self.mass_error, "interval": [low, high], "unit": "kg"},
            "center_of_gravity": {
                "value": self.center_of_gravity.tolist(),
                "standard_error": self.center_of_gravity_error.tolist(),
                "unit": "m",
            },
            "inertia": {
                "value": dict(zip(_MOMENTS, (float(self.inertia[ij]) for ij in ENTRIES), strict=True)),
                "standard_error": dict(zip(_MOMENTS, self.inertia_error.tolist(), strict=True)),
                "about": "center_of_gravity",
                "unit": "kg m²",
            },
            "parameters": {
                "names": list(INERTIAL_NAMES),
                "value": self.parameters.tolist(),
                "standard_error": self.standard_errors.tolist(),
                "shown": list(self.shown),
            },
            "physically_consistent": self.possible,
            "notes": list(self.notes),
        }

    def tool_data(self) -> dict[str, Any]:
        """As robot makers ask for it: kg, mm, kg m² about the centre of gravity, axes of the flange frame."""
        x, y, z = (1000.0 * self.center_of_gravity).tolist()
        moments = {f"{name}_kg_m2": float(self.inertia[ij]) for name, ij in zip(_MOMENTS, ENTRIES, strict=True)}
        return {"frame": self.frame, "mass_kg": self.mass, "cog_x_mm": x, "cog_y_mm": y, "cog_z_mm": z, **moments}

    def to_csv(self) -> str:
        data = self.tool_data()
        return csv_text([data, data.values()])

    def to_yaml(self) -> str:
        return str(yaml.safe_dump(self.tool_data(), sort_keys=False))


def between(here: LinkFrame, there: LinkFrame) -> Array:
    """The 10×10 matrix that takes parameters in the frame `here` to those in `there`, of the same link."""
    rotation = there.rotation.T @ here.rotation
    return parameter_transfer(rotation, there.rotation.T @ (here.translation - there.translation))


def own_frame(link: Link, host: int) -> LinkFrame:
    """The frame of the own parameters of `link`, which is number `host`."""
    return LinkFrame(host, link.frame_rotation, link.frame_translation)


def about_com(parameters: Array) -> Array:
    """The tensor about the centre of gravity (kg m²) of a body's ten `parameters`."""
    c = skew(parameters[1:4] / parameters[0])
    return np.asarray(inertia_matrix(parameters) + parameters[0] * c @ c)


def read_load(path: str | os.PathLike[str]) -> Load:
    """The load in the file `path`: tool data as `Load.to_yaml` writes it, taken as exact; YAML, TOML or JSON."""
    source = Path(path)
    wanted = ("mass_kg", *(f"cog_{x}_mm" for x in "xyz"), *(f"{name}_kg_m2" for name in _MOMENTS))
    given = Field(read_document(source, SteelyardError), str(source), error=SteelyardError).table(("frame", *wanted))
    mass, *rest = (given["mass_kg"].positive(), *(given[name].number() for name in wanted[1:]))
    tensor = np.zeros((3, 3))
    for (i, j), value in zip(ENTRIES, rest[3:], strict=True):
        tensor[i, j] = tensor[j, i] = value
    parameters = parameters_from_com(mass, 1e-3 * np.array(rest[:3]), tensor)
    return Load(given["frame"].text(), parameters, np.zeros((10, 10)))


def cuboid(mass: float, size: Array, center: Array) -> Array:
    """The ten parameters of a homogeneous cuboid of `mass` (kg) and `size` (m), its middle at `center` (m), axes along
    the frame's.
    """
    x, y, z = np.asarray(size, dtype=float) ** 2
    tensor = mass / 12.0 * np.diag([y + z, x + z, x + y])
    return move_parameters(np.concatenate([[mass], np.zeros(3), tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]),
                           np.eye(3), center)  # fmt: skip
