"""`IdentificationRun`: writes an identification as a run folder (docs/run-folder.md)."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.assumptions.ledger import Ledger
from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.estimation.linear.significance import Removals
from steelyard.export import covariance_to_csv, model_to_sidecar, parameters_to_csv
from steelyard.export._bodies import IDENTIFY_POSSIBLE
from steelyard.ground.outcome import Content, Outcome, file_name
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.identification._verdict import Verdict
from steelyard.identification.identification import Identification
from steelyard.identification.parameter_table import BASE_PARAMETERS, base_rows
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.signals.prepare import Preparation

if TYPE_CHECKING:
    from rich.console import Console


@short_repr
@dataclass(frozen=True, eq=False)
class IdentificationRun(Outcome):
    """An identification with its inputs.

    Args:
        identification: Result to write.
        inputs: Files whose hashes are stored with the result.
        source: URDF or MJCF of the robot; the exported URDF keeps its meshes and names.
    """

    identification: Identification
    inputs: Sequence[Path] = ()
    source: Path | None = None

    @property
    def verdict(self) -> Verdict:
        return self.identification.verdict

    def to_json(self) -> dict[str, Any]:
        return result_json(self.identification, self.inputs, self.missing_files)

    @cached_property
    def _robot_files(self) -> dict[str, Callable[[Path], object]]:
        """Writers of the robot files for other programs, by file name."""
        name, held = file_name(self.identification.robot.name), {f.name: f for f in self.identification.files_to_write}
        return {
            f"{name}.urdf": lambda path: held["urdf"].write(path, self.source),
            f"{name}.xml": lambda path: held["mjcf"].write(path, self.source),
        }

    @cached_property
    def missing_files(self) -> dict[str, str]:
        """Robot files that cannot be written, with reasons; a free fit can have impossible bodies."""
        out = {}
        with TemporaryDirectory() as folder:
            for name, write in self._robot_files.items():
                try:
                    write(Path(folder) / name)
                except ExportError as error:
                    out[name] = str(error)
        mjcf = f"{file_name(self.identification.robot.name)}.xml"
        written = next(f.model for f in self.identification.files_to_write if f.name == "mjcf")
        if mjcf not in out and not written.possible:
            out[mjcf] = _negative_terms(written)
        return out

    def files(self) -> dict[str, Content]:
        name, result = file_name(self.identification.robot.name), self.identification
        model = result.model
        fitted = {f.name: f.model for f in result.formats}
        out: dict[str, Content] = {
            **{file: write for file, write in self._robot_files.items() if file not in self.missing_files},
            f"{name}.steelyard.json": lambda path: model_to_sidecar(model, path, fitted),
            "parameters.csv": lambda path: parameters_to_csv(model, path),
            "covariance.csv": lambda path: covariance_to_csv(result.base.names, result.estimate.covariance, path),
        }
        history = result.free.parameter_history
        if history is not None:
            out |= history.files()
        return out

    def page(self) -> str:
        from steelyard.identification.page import identification_report

        return identification_report(self.identification, self.inputs, self.missing_files)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.identification.page import print_identification

        print_identification(self.identification, out, folder, self.missing_files)


_NO_SEARCH = "Only a structure search computes it, and there was none (--terms or --plain)."
_WHY_NULL = {
    "settings/score_cutoff": "It was not set; score_cutoff_hz is the value used.",
    "settings/terms/*/*": "The term applies to all joints, or its default is used.",
    "torque_between": "The scheme determines it, or the friction was known.",
    "delay": "It was given, or the logs show no common delay of all joints.",
    "band": "No torque rows are fitted, or the logs are too short to compare cut-offs on left-out blocks.",
    "band/candidates/*/explained_in_octave": "It is the lowest candidate.",
    "structure": "There was no search: the terms were given, or this scheme or estimator has none.",
    "between_logs": "There was only one identification log.",
    "assumptions": "They were not requested (check=False), or there are no torque rows to test them.",
    **{f"assumptions/entries/*/{name}": why for name, why in Ledger.why_null.items()},
    "description": "The model is not physically possible, its friction was known, or the scores have no accelerations.",
    "error_without_known_friction_percent": "There was no known friction.",
    "base_parameters/condition_number": "It is infinite: not all base parameters are identifiable from this motion.",
    "base_parameters/list/*/relative_percent": "The value is zero.",
    "base_parameters/list/*/rounding_shift": "The rounding of the logged values is too fine to matter.",
    **{f"base_parameters/list/*/{name}_error": _NO_SEARCH for name in ("noise", "motion", "structure")},
    "base_parameters/list/*/delay_error": "No delay of the torques was estimated.",
    "estimation/cost": "The estimator has none.",
    "significance": "It was not requested (--significant).",
}


def result_json(
    result: Identification, inputs: Sequence[Path] = (), missing: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Convert an identification to plain values without NaN and infinity; the same input gives the same bytes.

    Args:
        result: Identification to convert.
        inputs: Files whose hashes are stored with the result.
        missing: Files that the run folder lacks, with reasons.
    """
    estimate = result.estimate
    links = result.robot.inertial_count
    # Parameters of known friction come last.
    classes = [*result.base.classes, *["known"] * (len(result.model.theta) - len(result.base.classes))]
    document = {
        "schema": 1,
        "robot": {
            "name": result.robot.name,
            "joints": list(result.robot.joint_names),
            "gravity": [float(g) for g in result.robot.gravity],
            "torque_used": [n for n, u in zip(result.robot.joint_names, result.robot.torque_used, strict=True) if u],
        },
        "settings": {
            **result.settings.to_json(),
            "terms": [{"kind": t.name, "on": t.on, "where": t.where, **t.options} for t in result.model.terms.terms],
            "cutoff_hz": result.cutoff_hz,
            "score_cutoff_hz": result.score_cutoff_hz,
            "velocity": result.velocity,
            "velocity_delay_s": dict(result.late_velocities),
        },
        "band": None if result.band is None else result.band.to_json(),
        "torque_between": None if result.between is None else result.between.to_json(),
        "delay": None if result.delay is None else result.delay.to_json(),
        "structure": None if result.structure is None else result.structure.to_json(),
        "between_logs": None if result.agreement is None else result.agreement.to_json(),
        "assumptions": None if result.assumptions is None else result.assumptions.to_json(),
        "description": None if result.description is None else result.description.to_json(),
        "error_without_known_friction_percent": result.without_known_friction,
        "verdict": asdict(result.verdict),
        "torque_error": result.torque_error.to_json(),
        "torque_band": result.torque_band.to_json(),
        "physically_consistent": result.possible,
        "base_parameters": {
            "count": result.base.rank,
            "condition_number": result.condition_number,
            "condition_of": "base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm",
            "list": BASE_PARAMETERS.records(base_rows(result)),
        },
        "parameters": [
            {"name": p.name, "unit": p.unit, "value": float(v), "class": c}
            for p, v, c in zip(result.model.dynamics.parameters, result.model.theta, classes, strict=True)
        ],
        "links": [
            {"name": link.name, "smallest_pseudo_inertia_eigenvalue": float(e)}
            for link, e in zip(result.robot.links, smallest_pseudo_eigenvalues(result.model.theta[:links]), strict=True)
        ],
        "estimation": {
            "result": estimate.result.value,
            "notes": list(estimate.notes),
            "cost": float(estimate.cost),
            "residual_standard_deviation": [float(s) for s in estimate.residual_std],
        },
        "significance": _significance(result),
        "check": [{"log": name, **check.to_json()} for name, check in result.checks],
        "check_of_validation": [{"log": name, **check.to_json()} for name, check in result.validation_checks],
        "copies": [copy.to_json() for copy in result.copies],
        "identification": [s.to_json() for s in result.identification],
        "validation": [s.to_json() for s in result.validation],
        "validation_of_the_free_fit": [s.to_json() for s in result.free_validation],
        "nominal": [s.to_json() for s in result.nominal],
        "files": [f.to_json() for f in result.files],
        "missing_files": [{"file": file, "reason": reason} for file, reason in (missing or {}).items()],
        "inputs": [{"file": p.name, "sha256": _sha256(p)} for p in inputs if p.is_file()],
        "versions": {
            "steelyard": version("steelyard"),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    settings = {f"settings/preparation/{name}": why for name, why in Preparation.why_null.items()}
    return explained(document, _WHY_NULL | settings)


def _negative_terms(model: Model) -> str:
    """Name the terms of a model below their bounds, which prevent a simulation by MuJoCo."""
    values = model.theta[model.robot.inertial_count :]
    names = [p.name for p, v, least in zip(model.terms.parameters, values, model.terms.lower, strict=True) if v < least]
    return f"{', '.join(names)} of this model would add energy to a simulation; {IDENTIFY_POSSIBLE}."


def _significance(result: Identification) -> dict[str, Any] | None:
    """List the parameters that `significant` removed from the free fit; None if it was not requested."""
    if result.reduced is None:
        return None
    removals: Removals = result.reduced.details["removals"]
    return {
        "level": removals.level,
        "removed": [{"name": s.name, "t": float(s.t), "p": float(s.p)} for s in removals.steps],
        "joint_test": {"F": float(removals.F), "p": float(removals.p)},
        "cost_rise_percent": float(removals.cost_rise_percent),
        "delivered": not result.settings.physical,
        "values": [float(b) for b in result.reduced.beta],
        "standard_errors": [float(e) for e in result.reduced.standard_errors],
        "validation": [s.to_json() for s in result.reduced_validation],
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
