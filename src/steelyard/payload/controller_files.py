"""Writes payloads for robot controllers: Universal Robots, Franka, KUKA, ABB and Fanuc."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import rounded_to, with_error
from steelyard.ground.registry import Registry
from steelyard.ground.short_repr import short_repr
from steelyard.payload.payload import ENTRIES, Payload, about_com
from steelyard.robot.spatial import quaternion_of, rpy_of

MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
_KILOGRAM_FORCE = 9.80665  # N
_NOT_IDENTIFIABLE, _ZERO = "not identifiable from this motion", "95 % interval includes zero"
_ASCII = str.maketrans({"²": "2", "±": "+/-"})  # some controllers only read ASCII
_EXACT_DIGITS = 6  # significant digits of a payload without error bars


@dataclass(frozen=True)
class PayloadFigure:
    """A number for a controller.

    Attributes:
        value: Value.
        error: Standard error.
        mark: Remark for the user, or "".
    """

    value: float
    error: float
    mark: str = ""

    def times(self, factor: float) -> PayloadFigure:
        """Convert to another unit: multiply by `factor`."""
        return PayloadFigure(factor * self.value, factor * self.error, self.mark)

    @property
    def rounded(self) -> float:
        """The value, rounded to the second digit of its error."""
        if self.error > 0.0:
            return rounded_to(self.value, self.error) + 0.0
        return float(f"{self.value:.{_EXACT_DIGITS}g}") + 0.0

    def __str__(self) -> str:
        text = np.format_float_positional(self.rounded, trim="0")
        return text if "." in text else f"{text}.0"


@short_repr
@dataclass(frozen=True, eq=False)
class ControllerPayload:
    """The identifiable figures of a payload, without insignificant digits.

    An inertia tensor that is not fully identifiable, or not physically possible, becomes zero, which controllers
    treat as a point mass. A centre of gravity that is not identifiable becomes zero as well. Both get a remark.
    """

    load: Payload

    @cached_property
    def mass(self) -> PayloadFigure:
        """Mass [kg]."""
        if not self.load.identifiable[0] or self.load.mass <= 0.0:
            raise SteelyardError(
                f"The mass of the payload ({self.load.mass:.3g} kg) is not identified, so it cannot be written for a "
                "controller; play a motion that tilts the wrist."
            )
        return PayloadFigure(self.load.mass, self.load.mass_error)

    @property
    def _centre_identifiable(self) -> bool:
        return all(self.load.identifiable[:4])

    @cached_property
    def centre(self) -> tuple[PayloadFigure, ...]:
        """x, y, z of the centre of gravity in the frame of the payload [m]."""
        if not self._centre_identifiable:
            return (PayloadFigure(0.0, 0.0, _NOT_IDENTIFIABLE),) * 3
        load = self.load
        return _figures(load.center_of_gravity, load.center_of_gravity_error)

    @property
    def no_tensor(self) -> str:
        """Reason for writing no tensor, or ""."""
        if not all(self.load.identifiable):
            return _NOT_IDENTIFIABLE
        return "" if self.load.possible else "this tensor is physically impossible"

    @cached_property
    def moments(self) -> tuple[PayloadFigure, ...]:
        """Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of gravity, in the axes of the frame [kg m²]."""
        if self.no_tensor:
            return (PayloadFigure(0.0, 0.0, self.no_tensor),) * 6
        return _figures([self.load.inertia[ij] for ij in ENTRIES], self.load.inertia_error)

    @cached_property
    def principal(self) -> tuple[Array, tuple[PayloadFigure, ...]]:
        """Principal axes (columns, closest to the axes of the frame) and the moments about them [kg m²].

        The axes are those of the frame if no product of inertia differs significantly from zero.
        """
        if self.no_tensor or all(x.mark or x.value == 0.0 for x in self.moments[3:]):
            return np.eye(3), self.moments[:3]
        axes = _nearest_axes(self.load.inertia)

        def about_axes(parameters: Array) -> Array:
            return np.diag(axes.T @ about_com(parameters) @ axes)

        return axes, _figures(about_axes(self.load.parameters), self.load.errors_of(about_axes))

    def remarks(self, moments: Sequence[str] = MOMENTS) -> list[str]:
        """Describe every figure in one line, with its error bar and its mark; `moments` selects moments of inertia."""
        figures = {"mass kg": self.mass}
        figures |= {f"centre of gravity {x} mm": c.times(1e3) for x, c in zip("xyz", self.centre, strict=True)}
        figures |= {f"{n} kg m²": x for n, x in zip(MOMENTS, self.moments, strict=True) if n in moments}
        return [
            f"{name}: {with_error(x.value, x.error) if x.error else x}{f' ({x.mark})' if x.mark else ''}"
            for name, x in figures.items()
        ]


def _figures(values: Array | Sequence[float], errors: Array) -> tuple[PayloadFigure, ...]:
    marks = [_ZERO if abs(v) < 2.0 * e else "" for v, e in zip(values, errors, strict=True)]
    return tuple(PayloadFigure(float(v), float(e), m) for v, e, m in zip(values, errors, marks, strict=True))


def _nearest_axes(tensor: Array) -> Array:
    """Return principal axes as columns, in the order and with the signs closest to the axes of the frame."""
    vectors = np.linalg.eigh(tensor)[1]
    order = max(itertools.permutations(range(3)), key=lambda p: sum(abs(vectors[k, p[k]]) for k in range(3)))
    axes = vectors[:, list(order)]
    axes = axes * np.where(np.diag(axes) < 0.0, -1.0, 1.0)
    return axes if np.linalg.det(axes) > 0.0 else axes * np.array([1.0, 1.0, -1.0])


class PayloadTarget(ABC):
    """A controller format. `PAYLOAD_TARGETS` lists them by name.

    Other packages register theirs as entry points of the group `steelyard.payload_targets`.

    Attributes:
        title: Maker and format.
        file: File name.
        comment: Prefix of comment lines; "" if the format has no comments.
        use: Instruction for the user.
        first: Number of lines of code before the first comment.
    """

    title: ClassVar[str]
    file: ClassVar[str]
    comment: ClassVar[str]
    use: ClassVar[str]
    first: ClassVar[int] = 0

    @abstractmethod
    def lines(self, known: ControllerPayload) -> list[str]:
        """Write the code that sets a payload (`known`)."""

    def text(self, load: Payload) -> str:
        """Write the file for a payload `load`: comments on every figure, then the code."""
        known = ControllerPayload(load)
        comments = [
            f"Payload in frame {load.frame}, identified by Steelyard; use it with the same flange (or tool) frame.",
            *known.remarks(),
            self.use,
        ]
        code, remarks = self.lines(known), [f"{self.comment} {line.translate(_ASCII)}" for line in comments]
        code[self.first : self.first] = [line.encode("ascii", "replace").decode() for line in remarks]
        return "\n".join([*code, ""])


PAYLOAD_TARGETS: Registry[PayloadTarget] = Registry(
    "controller", ("steelyard.payload.controller_files",), group="steelyard.payload_targets"
)


class UrPayload(PayloadTarget):
    """URScript: kg, m, and kg m² about the centre of gravity, in the axes of the tool flange."""

    title, file, comment = "Universal Robots (URScript)", "load.script", "#"
    use = "Run it in a program, or enter the figures under Installation, Payload."

    def lines(self, known: ControllerPayload) -> list[str]:
        centre, moments = (", ".join(str(x) for x in group) for group in (known.centre, known.moments))
        return [f"set_target_payload({known.mass}, [{centre}], [{moments}])"]


class FrankaPayload(PayloadTarget):
    """JSON for libfranka's setLoad and the service of franka_ros2: m, and the tensor about the centre, by columns."""

    title, file, comment = "Franka (setLoad)", "load_franka.json", ""
    use = 'ros2 service call /service_server/set_load franka_msgs/srv/SetLoad "$(cat load_franka.json)"'

    def lines(self, known: ControllerPayload) -> list[str]:
        xx, yy, zz, xy, xz, yz = (x.rounded for x in known.moments)
        centre = [x.rounded for x in known.centre]
        columns = [xx, xy, xz, xy, yy, yz, xz, yz, zz]
        return [json.dumps({"mass": known.mass.rounded, "center_of_mass": centre, "load_inertia": columns})]

    def text(self, load: Payload) -> str:
        """Write the JSON of `load` without comments, which JSON lacks; the error bars are in `load.yaml`."""
        return "\n".join([*self.lines(ControllerPayload(load)), ""])


class KukaPayload(PayloadTarget):
    """KRL: mm; principal axes in degrees (A about Z, B about Y', C about X''); moments about them in kg m²."""

    title, file, comment = "KUKA (KRL)", "load_kuka.dat", ";"
    use = "LOAD_DATA belongs to the tool of that number in $config.dat; $LOAD is the active payload."

    def lines(self, known: ControllerPayload) -> list[str]:
        axes, moments = known.principal
        c, b, a = (f"{round(float(x), 2) + 0.0:.2f}" for x in np.degrees(rpy_of(axes)))
        place = ", ".join(f"{x} {v.times(1e3)}" for x, v in zip("XYZ", known.centre, strict=True))
        about = ", ".join(f"{x} {v}" for x, v in zip("XYZ", moments, strict=True))
        load = f"{{M {known.mass}, CM {{{place}, A {a}, B {b}, C {c}}}, J {{{about}}}}}"
        return [f"LOAD_DATA[1]={load}", f"; $LOAD={load}"]


class AbbPayload(PayloadTarget):
    """RAPID: mm; principal axes as a quaternion; moments about them in kg m²."""

    title, file, comment, first = "ABB (RAPID)", "load_abb.mod", "!", 1
    use = "GripLoad weighed; for a gripped part (in tool coordinates), or as tload of a tooldata (wrist)."

    def lines(self, known: ControllerPayload) -> list[str]:
        axes, moments = known.principal
        centre = ",".join(str(x.times(1e3)) for x in known.centre)
        turn = ",".join(f"{round(float(x), 6) + 0.0:.6f}" for x in quaternion_of(axes))
        about = ",".join(str(x) for x in moments)
        data = f"[{known.mass},[{centre}],[{turn}],{about}]"
        return ["MODULE WeighedLoad", f"  PERS loaddata weighed := {data};", "ENDMODULE"]


class FanucPayload(PayloadTarget):
    """A payload schedule: cm, and kgf cm s² about the centre, without products of inertia."""

    title, file, comment = "Fanuc (payload schedule)", "load_fanuc.txt", "--"
    use = (
        "MENU, SYSTEM, Motion, PAYLOAD SET of schedule 1 (centre in cm, inertia in kgf cm s², without Ixy, Ixz, Iyz). "
        "Axes are those of the faceplate: Z outwards, X upwards in the zero posture."
    )

    def lines(self, known: ControllerPayload) -> list[str]:
        figures = {"$PAYLOAD": known.mass}
        figures |= {f"$PAYLOAD_{x}": v.times(100.0) for x, v in zip("XYZ", known.centre, strict=True)}
        unit = 100.0 / _KILOGRAM_FORCE
        figures |= {f"$PAYLOAD_I{x}": v.times(unit) for x, v in zip("XYZ", known.moments[:3], strict=True)}
        return [f"$PLST_GRP1[1].{name} = {value}" for name, value in figures.items()]


for _name, _target in (
    ("ur", UrPayload()), ("franka", FrankaPayload()), ("kuka", KukaPayload()), ("abb", AbbPayload()),
    ("fanuc", FanucPayload()),
):  # fmt: skip
    PAYLOAD_TARGETS.register(_name)(_target)
