"""`Payload`: a body that a robot carries, with error bars."""

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
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.files import csv_text
from steelyard.ground.numbers import with_error
from steelyard.ground.reasons import WHY_NULL
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
_AT_REST = "Poses at rest do not show the inertia."
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass(frozen=True, eq=False, repr=False)
class Payload(DisplayMixin):
    """The ten inertial parameters of a body.

    Attributes:
        frame: Frame of the parameters, on a link of the robot.
        parameters: Parameters about the origin of the frame [kg, kg m, kg m²].
        covariance: Covariance of the parameters.
        identifiable: Whether the motion determines each of them.
        degrees: Degrees of freedom of the t interval; infinite for the normal one.
        boundary: The estimate was moved to the nearest physically possible body.
        notes: Remarks for the user.
    """

    frame: str
    parameters: Array
    covariance: Array
    identifiable: tuple[bool, ...] = (True,) * 10
    degrees: float = np.inf
    boundary: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("parameters", "covariance"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def headline(self) -> Headline:
        where = ", ".join(with_error(1000.0 * x, 1000.0 * e) for x, e in
                          zip(self.center_of_gravity, self.center_of_gravity_error, strict=True))  # fmt: skip
        mass = with_error(self.mass, self.mass_error)
        kind: Any = "warning" if self.notes or not self.possible else "good"
        return Headline(kind, f"{mass} kg at ({where}) mm in frame '{self.frame}'", self.notes)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Mass, centre of gravity and inertia about it ("load"); ten parameters about the origin ("parameters")."""
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
            "shown": self.identifiable,
        }

    @property
    def mass(self) -> float:
        return float(self.parameters[0])

    @property
    def center_of_gravity(self) -> Array:
        """Centre of gravity in the frame [m]."""
        return self.parameters[1:4] / self.mass

    @property
    def inertia(self) -> Array:
        """Inertia tensor about the centre of gravity, in the axes of the frame [kg m²]."""
        return about_com(self.parameters)

    @property
    def possible(self) -> bool:
        """Whether the parameters are physically possible: their pseudo-inertia is positive definite."""
        return bool(smallest_pseudo_eigenvalues(self.parameters)[0] > 0.0)

    @property
    def shows_inertia(self) -> bool:
        """Whether the data determine any entry of the inertia; poses at rest determine none."""
        return any(self.identifiable[4:])

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the ten parameters."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def mass_error(self) -> float:
        return float(self.standard_errors[0])

    @property
    def center_of_gravity_error(self) -> Array:
        return self.errors_of(lambda p: p[1:4] / p[0])

    @property
    def inertia_error(self) -> Array:
        """Standard errors of Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of gravity [kg m²]."""
        return self.errors_of(lambda p: np.array([about_com(p)[ij] for ij in ENTRIES]))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Compute the confidence interval of the mass [kg] at `level`, such as 0.95."""
        from scipy.stats import norm, t

        low = 0.5 * (1.0 + level)
        factor = float(norm.ppf(low) if np.isinf(self.degrees) else t.ppf(low, self.degrees))
        return self.mass - factor * self.mass_error, self.mass + factor * self.mass_error

    def errors_of(self, function: Callable[[Array], Array]) -> Array:
        """Compute the standard errors of a `function` of the ten parameters, to first order."""
        steps = 1e-6 * np.maximum(np.abs(self.parameters), 1e-3)
        jacobian = np.column_stack(
            [(function(self.parameters + d) - function(self.parameters - d)) / (2.0 * s)
             for s, d in zip(steps, np.diag(steps), strict=True)]
        )  # fmt: skip
        return np.sqrt(np.maximum(np.diag(jacobian @ self.covariance @ jacobian.T), 0.0))

    def in_frame(self, robot: Robot, frame: str) -> Payload:
        """Convert the payload to another frame of the same link.

        Args:
            robot: Robot that carries it.
            frame: Name of the frame.
        """
        transfer = frame_transfer(robot.frame(self.frame), robot.frame(frame))
        covariance = transfer @ self.covariance @ transfer.T
        return replace(self, frame=frame, parameters=transfer @ self.parameters, covariance=covariance)

    def attach_to(self, robot: Robot) -> Robot:
        """Add the payload to its link of `robot`, whose inertia must be known; returns a new robot."""
        place = robot.frame(self.frame)
        blocks = robot.inertial_parameters.reshape(-1, 10).copy()
        blocks[place.host] += frame_transfer(place, link_frame(robot.links[place.host], place.host)) @ self.parameters
        return robot.with_inertial_parameters(blocks)

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
                "standard_error": dict(
                    zip(_MOMENTS, self.inertia_error.tolist() if self.shows_inertia else [None] * 6, strict=True)
                ),
                "about": "center_of_gravity",
                "unit": "kg m²",
                **({} if self.shows_inertia else {WHY_NULL: {f"standard_error/{name}": _AT_REST for name in _MOMENTS}}),
            },
            "parameters": {
                "names": list(INERTIAL_NAMES),
                "value": self.parameters.tolist(),
                "standard_error": self.standard_errors.tolist(),
                "shown": list(self.identifiable),
            },
            "physically_consistent": self.possible,
            "notes": list(self.notes),
        }

    def tool_data(self) -> dict[str, Any]:
        """Return figures in the units of robot makers: kg, mm, kg m² about the centre of gravity, axes of the frame."""
        x, y, z = (1000.0 * self.center_of_gravity).tolist()
        moments = {f"{name}_kg_m2": float(self.inertia[ij]) for name, ij in zip(_MOMENTS, ENTRIES, strict=True)}
        return {"frame": self.frame, "mass_kg": self.mass, "cog_x_mm": x, "cog_y_mm": y, "cog_z_mm": z, **moments}

    def to_csv(self) -> str:
        data = self.tool_data()
        return csv_text([data, data.values()])

    def to_yaml(self) -> str:
        return str(yaml.safe_dump(self.tool_data(), sort_keys=False))


def frame_transfer(here: LinkFrame, there: LinkFrame) -> Array:
    """Return the 10×10 matrix that converts inertial parameters between two frames of one link.

    Args:
        here: Frame of the given parameters.
        there: Frame of the converted parameters.
    """
    rotation = there.rotation.T @ here.rotation
    return parameter_transfer(rotation, there.rotation.T @ (here.translation - there.translation))


def link_frame(link: Link, host: int) -> LinkFrame:
    """Return the reference frame of a link's inertial parameters.

    Args:
        link: Link.
        host: Index of the link.
    """
    return LinkFrame(host, link.frame_rotation, link.frame_translation)


def about_com(parameters: Array) -> Array:
    """Compute the tensor about the centre of gravity [kg m²] from ten `parameters`."""
    c = skew(parameters[1:4] / parameters[0])
    return np.asarray(inertia_matrix(parameters) + parameters[0] * c @ c)


def read_payload(path: str | os.PathLike[str]) -> Payload:
    """Read a payload from a YAML, TOML or JSON file at `path`, as `Payload.to_yaml` writes it, without error bars."""
    source = Path(path)
    wanted = ("mass_kg", *(f"cog_{x}_mm" for x in "xyz"), *(f"{name}_kg_m2" for name in _MOMENTS))
    fields = Field(read_document(source, SteelyardError), str(source), error=SteelyardError).table(("frame", *wanted))
    mass, *rest = (fields["mass_kg"].positive(), *(fields[name].number() for name in wanted[1:]))
    tensor = np.zeros((3, 3))
    for (i, j), value in zip(ENTRIES, rest[3:], strict=True):
        tensor[i, j] = tensor[j, i] = value
    parameters = parameters_from_com(mass, 1e-3 * np.array(rest[:3]), tensor)
    return Payload(fields["frame"].text(), parameters, np.zeros((10, 10)))


def cuboid(mass: float, size: Array, center: Array) -> Array:
    """Compute the ten parameters of a homogeneous cuboid with edges along the axes of the frame.

    Args:
        mass: Mass [kg].
        size: Length of its edges [m].
        center: Position of its centre [m].
    """
    x, y, z = np.asarray(size, dtype=float) ** 2
    tensor = mass / 12.0 * np.diag([y + z, x + z, x + y])
    return move_parameters(np.concatenate([[mass], np.zeros(3), tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]),
                           np.eye(3), center)  # fmt: skip
