"""Which families JSON knows, by name."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar

from steelyard.errors import UnknownNameError
from steelyard.excitation.trajectories.family import Family, TrajectoryError


class _Named(Protocol):
    kind: ClassVar[str]


F = TypeVar("F", bound=_Named)
_families: dict[str, type] = {}


def known(cls: type[F]) -> type[F]:
    """Makes a family class known under its `kind`; its settings are its constructor's keywords."""
    _families[cls.kind] = cls
    return cls


def family_to(family: Family) -> dict[str, Any]:
    return {"family": family.kind, **family.settings()}


def family_from(document: dict[str, Any]) -> Family:
    """The family of one joint's entry; what is not a setting (`coefficients`) is left to the caller."""
    name = document.get("family")
    if not isinstance(name, str) or name not in _families:
        raise UnknownNameError("trajectory family", str(name), sorted(_families))
    settings = {key: value for key, value in document.items() if key not in ("family", "coefficients")}
    try:
        family: Family = _families[name](**settings)
    except TypeError as error:
        raise TrajectoryError(f"The settings of family '{name}' cannot be read: {error}.") from None
    return family
