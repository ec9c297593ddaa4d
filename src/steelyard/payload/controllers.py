"""A load in the words of robot controllers: Universal Robots, Franka, KUKA, ABB and Fanuc."""

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
from steelyard.payload.load import ENTRIES, Load, about_com
from steelyard.robot.spatial import quaternion_of, rpy_of

MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
_KILOGRAM_FORCE = 9.80665  # N
_NOT_SHOWN, _ZERO = "the motion does not show it", "cannot be told from zero"
_ASCII = str.maketrans({"²": "2", "±": "+/-"})  # all that some controllers read
_EXACT_DIGITS = 6  # of a load without error bars


@dataclass(frozen=True)
class LoadFigure:
    """A number for a controller, with its error bar, and what a person should know of it ("" where nothing)."""

    value: float
    error: float
    mark: str = ""

    def times(self, factor: float) -> LoadFigure:
        """The same in another unit, of which the old one is so many (`factor`)."""
        return LoadFigure(factor * self.value, factor * self.error, self.mark)

    @property
    def rounded(self) -> float:
        """As many digits as the error bar allows: to where its second digit stands."""
        if self.error > 0.0:
            return rounded_to(self.value, self.error) + 0.0
        return float(f"{self.value:.{_EXACT_DIGITS}g}") + 0.0

    def __str__(self) -> str:
        text = np.format_float_positional(self.rounded, trim="0")
        return text if "." in text else f"{text}.0"


@dataclass(frozen=True, eq=False)
class KnownLoad:
    """What a controller may be told of a load: nothing that the motion did not show, and no digit that is not known.

    A tensor that is shown in part, or that no body has, is written as zero, which controllers take for a point mass;
    so is a centre of gravity that is not shown. Both are marked.
    """

    load: Load

    @cached_property
    def mass(self) -> LoadFigure:
        """kg."""
        if not self.load.shown[0] or self.load.mass <= 0.0:
            raise SteelyardError(
                f"The mass of the load ({self.load.mass:.3g} kg) is not known, and no controller can be told about it; "
                "play a motion that tilts the wrist."
            )
        return LoadFigure(self.load.mass, self.load.mass_error)

    @property
    def _centre_shown(self) -> bool:
        return all(self.load.shown[:4])

    @cached_property
    def centre(self) -> tuple[LoadFigure, ...]:
        """x, y, z of the centre of gravity in the load's frame, m."""
        if not self._centre_shown:
            return (LoadFigure(0.0, 0.0, _NOT_SHOWN),) * 3
        load = self.load
        return _figures(load.center_of_gravity, load.center_of_gravity_error)

    @property
    def no_tensor(self) -> str:
        """Why there is no tensor to be written; "" where there is."""
        if not all(self.load.shown):
            return _NOT_SHOWN
        return "" if self.load.possible else "no body has this tensor"

    @cached_property
    def moments(self) -> tuple[LoadFigure, ...]:
        """Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of gravity, axes of the load's frame, kg m²."""
        if self.no_tensor:
            return (LoadFigure(0.0, 0.0, self.no_tensor),) * 6
        return _figures([self.load.inertia[ij] for ij in ENTRIES], self.load.inertia_error)

    @cached_property
    def principal(self) -> tuple[Array, tuple[LoadFigure, ...]]:
        """Axes (the columns, nearest to the frame's own) and moments about them, kg m².

        Products that cannot be told from zero turn no axes.
        """
        if self.no_tensor or all(x.mark or x.value == 0.0 for x in self.moments[3:]):
            return np.eye(3), self.moments[:3]
        axes = _nearest_axes(self.load.inertia)

        def about_axes(parameters: Array) -> Array:
            return np.diag(axes.T @ about_com(parameters) @ axes)

        return axes, _figures(about_axes(self.load.parameters), self.load.errors_of(about_axes))

    def remarks(self, moments: Sequence[str] = MOMENTS) -> list[str]:
        """One line for every figure that is written, with its error bar and its mark; `moments` are those used."""
        named = {"mass kg": self.mass}
        named |= {f"centre of gravity {x} mm": c.times(1e3) for x, c in zip("xyz", self.centre, strict=True)}
        named |= {f"{n} kg m²": x for n, x in zip(MOMENTS, self.moments, strict=True) if n in moments}
        return [
            f"{name}: {with_error(x.value, x.error) if x.error else x}{f' ({x.mark})' if x.mark else ''}"
            for name, x in named.items()
        ]


def _figures(values: Array | Sequence[float], errors: Array) -> tuple[LoadFigure, ...]:
    marks = [_ZERO if abs(v) < 2.0 * e else "" for v, e in zip(values, errors, strict=True)]
    return tuple(LoadFigure(float(v), float(e), m) for v, e, m in zip(values, errors, marks, strict=True))


def _nearest_axes(tensor: Array) -> Array:
    """Principal axes as columns, in the order and with the signs that turn least from the frame's own."""
    found = np.linalg.eigh(tensor)[1]
    order = max(itertools.permutations(range(3)), key=lambda p: sum(abs(found[k, p[k]]) for k in range(3)))
    axes = found[:, list(order)]
    axes = axes * np.where(np.diag(axes) < 0.0, -1.0, 1.0)
    return axes if np.linalg.det(axes) > 0.0 else axes * np.array([1.0, 1.0, -1.0])


class LoadTarget(ABC):
    """A controller that loads are written for. Members enter `LOAD_TARGETS` by name; other packages announce theirs as
    entry points of the group `steelyard.load_targets`.

    Attributes:
        title: whose format it is.
        file: what the file is called.
        comment: what a line that is no code begins with; "" where the format has none.
        use: what a person does with it.
        first: behind how many lines of code remarks may stand.
    """

    title: ClassVar[str]
    file: ClassVar[str]
    comment: ClassVar[str]
    use: ClassVar[str]
    first: ClassVar[int] = 0

    @abstractmethod
    def lines(self, known: KnownLoad) -> list[str]:
        """The code that tells a controller about a load (`known`)."""

    def text(self, load: Load) -> str:
        """The file for a `load`: remarks on every figure, then the code."""
        known = KnownLoad(load)
        said = [
            f"Load in frame {load.frame}, weighed by Steelyard; that must be the controller's flange (or tool) frame.",
            *known.remarks(),
            self.use,
        ]
        code, remarks = self.lines(known), [f"{self.comment} {line.translate(_ASCII)}" for line in said]
        code[self.first : self.first] = [line.encode("ascii", "replace").decode() for line in remarks]
        return "\n".join([*code, ""])


LOAD_TARGETS: Registry[LoadTarget] = Registry(
    "controller", ("steelyard.payload.controllers",), group="steelyard.load_targets"
)


class UrLoad(LoadTarget):
    """URScript: m, m and kg m² about the centre of gravity, axes of the tool flange."""

    title, file, comment = "Universal Robots (URScript)", "load.script", "#"
    use = "Run it in a program, or type the figures under Installation, Payload."

    def lines(self, known: KnownLoad) -> list[str]:
        centre, moments = (", ".join(str(x) for x in group) for group in (known.centre, known.moments))
        return [f"set_target_payload({known.mass}, [{centre}], [{moments}])"]


class FrankaLoad(LoadTarget):
    """JSON for libfranka's setLoad and for franka_ros2's service: m, and the tensor about the centre, by columns."""

    title, file, comment = "Franka (setLoad)", "load_franka.json", ""
    use = 'ros2 service call /service_server/set_load franka_msgs/srv/SetLoad "$(cat load_franka.json)"'

    def lines(self, known: KnownLoad) -> list[str]:
        xx, yy, zz, xy, xz, yz = (x.rounded for x in known.moments)
        centre = [x.rounded for x in known.centre]
        columns = [xx, xy, xz, xy, yy, yz, xz, yz, zz]
        return [json.dumps({"mass": known.mass.rounded, "center_of_mass": centre, "load_inertia": columns})]

    def text(self, load: Load) -> str:
        """JSON has no remarks, and the service would refuse others; `load.yaml` has the error bars of the `load`."""
        return "\n".join([*self.lines(KnownLoad(load)), ""])


class KukaLoad(LoadTarget):
    """KRL: mm, degrees (A about Z, B about Y', C about X'') of the principal axes at the centre, kg m² about them."""

    title, file, comment = "KUKA (KRL)", "load_kuka.dat", ";"
    use = "LOAD_DATA belongs to the tool of that number in $config.dat; $LOAD is what is active."

    def lines(self, known: KnownLoad) -> list[str]:
        axes, moments = known.principal
        c, b, a = (f"{round(float(x), 2) + 0.0:.2f}" for x in np.degrees(rpy_of(axes)))
        place = ", ".join(f"{x} {v.times(1e3)}" for x, v in zip("XYZ", known.centre, strict=True))
        about = ", ".join(f"{x} {v}" for x, v in zip("XYZ", moments, strict=True))
        load = f"{{M {known.mass}, CM {{{place}, A {a}, B {b}, C {c}}}, J {{{about}}}}}"
        return [f"LOAD_DATA[1]={load}", f"; $LOAD={load}"]


class AbbLoad(LoadTarget):
    """RAPID: mm, the principal axes as a quaternion, kg m² about them."""

    title, file, comment, first = "ABB (RAPID)", "load_abb.mod", "!", 1
    use = "GripLoad weighed; for what the gripper holds (in tool coordinates), or as tload of a tooldata (wrist)."

    def lines(self, known: KnownLoad) -> list[str]:
        axes, moments = known.principal
        centre = ",".join(str(x.times(1e3)) for x in known.centre)
        turn = ",".join(f"{round(float(x), 6) + 0.0:.6f}" for x in quaternion_of(axes))
        about = ",".join(str(x) for x in moments)
        data = f"[{known.mass},[{centre}],[{turn}],{about}]"
        return ["MODULE WeighedLoad", f"  PERS loaddata weighed := {data};", "ENDMODULE"]


class FanucLoad(LoadTarget):
    """A payload schedule: cm, and kgf cm s² about the centre; products of inertia have no place in it."""

    title, file, comment = "Fanuc (payload schedule)", "load_fanuc.txt", "--"
    use = (
        "MENU, SYSTEM, Motion, PAYLOAD SET of schedule 1 (centre in cm, inertia in kgf cm s²; Ixy, Ixz, Iyz have no "
        "place there). Axes are the faceplate's: Z outwards, X upwards in the zero posture."
    )

    def lines(self, known: KnownLoad) -> list[str]:
        shown = {"$PAYLOAD": known.mass}
        shown |= {f"$PAYLOAD_{x}": v.times(100.0) for x, v in zip("XYZ", known.centre, strict=True)}
        unit = 100.0 / _KILOGRAM_FORCE
        shown |= {f"$PAYLOAD_I{x}": v.times(unit) for x, v in zip("XYZ", known.moments[:3], strict=True)}
        return [f"$PLST_GRP1[1].{name} = {value}" for name, value in shown.items()]


for _name, _target in (
    ("ur", UrLoad()), ("franka", FrankaLoad()), ("kuka", KukaLoad()), ("abb", AbbLoad()), ("fanuc", FanucLoad()),
):  # fmt: skip
    LOAD_TARGETS.register(_name)(_target)
