"""`ModelFormat`: a file format for models, and the registry of formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steelyard.dynamics.model import Model
from steelyard.export.c import model_to_c
from steelyard.export.mjcf import model_to_mjcf
from steelyard.export.parameter_tables import parameters_to_csv
from steelyard.export.sidecar import model_to_sidecar
from steelyard.export.urdf import model_to_urdf
from steelyard.ground.outcome import Content
from steelyard.ground.registry import Registry


@dataclass(frozen=True)
class ModelFormat:
    """A file format for models, registered in `MODEL_FORMATS`. Plug-ins use the entry-point group `steelyard.exports`.

    Args:
        description: Short description.
        files: Builds the files by name from a model, a file name, and the robot's original description or None.
        beside: Suffixes of files that are written in addition to these.
        lacking: Returns how to install missing requirements, or "".
    """

    description: str
    files: Callable[[Model, str, Path | None], dict[str, Content]]
    beside: tuple[str, ...] = ()
    lacking: Callable[[], str] = str


MODEL_FORMATS: Registry[ModelFormat] = Registry(
    "format",
    tuple(f"steelyard.export.{name}" for name in ("formats", "sdf", "xacro", "usd", "fmu", "observer_code")),
    group="steelyard.exports",
)


def c_name(name: str) -> str:
    """Convert a `name` to a valid name of a C function."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return plain if plain[:1].isalpha() else f"robot_{plain}"


def _urdf(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {
        f"{name}.urdf": lambda path: model_to_urdf(model, path, source),
        f"{name}.steelyard.json": lambda path: model_to_sidecar(model, path),
    }


def _mjcf(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {f"{name}.xml": lambda path: model_to_mjcf(model, path, source)}


def _c(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {f"{name}.c": lambda path: model_to_c(model, path, c_name(name))}


def _csv(model: Model, name: str, source: Path | None) -> dict[str, Content]:
    return {"parameters.csv": lambda path: parameters_to_csv(model, path)}


for _name, _format in {
    "urdf": ModelFormat("URDF with a sidecar for data that URDF does not support", _urdf),
    "mjcf": ModelFormat("MuJoCo's XML", _mjcf),
    "c": ModelFormat("C99 source and header", _c, beside=(".h",)),
    "csv": ModelFormat("table of all parameters", _csv),
}.items():
    MODEL_FORMATS.register(_name)(_format)
