"""`IdentificationRun`: an identification as it is handed out: result.json (docs/run-folder.md), report, models."""

from __future__ import annotations

import hashlib
import math
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
from steelyard.identification.identification import Identification
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.signals.prepare import Preparation

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, eq=False)
class IdentificationRun(Outcome):
    """What was found, and what it was found from.

    Args:
        found: the identification.
        inputs: files whose hashes are kept with the result.
        source: the robot's URDF or MJCF, of which the exported URDF keeps meshes and names.
    """

    found: Identification
    inputs: Sequence[Path] = ()
    source: Path | None = None

    def to_json(self) -> dict[str, Any]:
        return result_json(self.found, self.inputs, self.missing_files)

    @cached_property
    def _robot_files(self) -> dict[str, Callable[[Path], object]]:
        """The writers of the files that other programs load, by file name."""
        name, held = file_name(self.found.robot.name), {f.name: f for f in self.found.files_to_write}
        return {
            f"{name}.urdf": lambda path: held["urdf"].write(path, self.source),
            f"{name}.xml": lambda path: held["mjcf"].write(path, self.source),
        }

    @cached_property
    def missing_files(self) -> dict[str, str]:
        """The robot files that cannot be written, with the reason: the numbers of a free fit may belong to no body."""
        out = {}
        with TemporaryDirectory() as folder:
            for name, write in self._robot_files.items():
                try:
                    write(Path(folder) / name)
                except ExportError as error:
                    out[name] = str(error)
        mjcf = f"{file_name(self.found.robot.name)}.xml"
        written = next(f.model for f in self.found.files_to_write if f.name == "mjcf")
        if mjcf not in out and not written.possible:
            out[mjcf] = _negative_terms(written)
        return out

    def files(self) -> dict[str, Content]:
        name, found = file_name(self.found.robot.name), self.found
        model = found.model
        fitted = {f.name: f.model for f in found.formats}
        out: dict[str, Content] = {
            **{file: write for file, write in self._robot_files.items() if file not in self.missing_files},
            f"{name}.steelyard.json": lambda path: model_to_sidecar(model, path, fitted),
            "parameters.csv": lambda path: parameters_to_csv(model, path),
            "covariance.csv": lambda path: covariance_to_csv(found.base.names, found.estimate.covariance, path),
        }
        history = found.free.parameter_history
        if history is not None:
            out |= history.files()
        return out

    def page(self) -> str:
        from steelyard.identification.page import identification_report

        return identification_report(self.found, self.inputs, self.missing_files)

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.identification.page import print_identification

        print_identification(self.found, out, folder, self.missing_files)


_NO_SEARCH = "It is told by a search for the structure, which there was not (--terms or --plain)."
_WHY_NULL = {
    "settings/score_cutoff": "By the rule; score_cutoff_hz is what it gave.",
    "settings/terms/*/*": "On every joint, or whatever the term itself takes.",
    "torque_between": "The scheme states it, or friction was known before.",
    "delay": "It was stated, or the logs show none that all joints share.",
    "band": "No torque rows are fitted, or the logs are too short to compare cut-offs on left-out blocks.",
    "band/candidates/*/explained_in_octave": "There is no candidate below the lowest.",
    "structure": "There was no search: the terms were given, or this way of fitting has none.",
    "between_logs": "One log was identified from.",
    "assumptions": "They were not asked for (check=False), or there are no torque rows that could test them.",
    **{f"assumptions/entries/*/{name}": why for name, why in Ledger.why_null.items()},
    "error_without_known_friction_percent": "No friction was known before.",
    "base_parameters/condition_number": "It is infinite: the motion does not show all base parameters.",
    "base_parameters/list/*/relative_percent": "The value is zero.",
    "base_parameters/list/*/rounding_shift": "The numbers of the log are not rounded so coarsely that it matters.",
    **{f"base_parameters/list/*/{name}_error": _NO_SEARCH for name in ("noise", "motion", "structure")},
    "estimation/cost": "The estimator has none.",
    "significance": "It was not asked for (--significant).",
}


def result_json(
    found: Identification, inputs: Sequence[Path] = (), missing: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What was `found` as plain values: no NaN, no infinity; the same bytes every time.

    Args:
        found: the identification.
        inputs: files whose hashes are kept with the result.
        missing: files that the run folder lacks, with the reason.
    """
    estimate = found.estimate
    errors = estimate.standard_errors
    shift = estimate.details.get("rounding_shift")
    signs = [found.base.impossible_signs(x.beta) for x in (estimate, found.free)]
    # What the error bars are made of, where a search for the structure told.
    parts = {name: estimate.details.get(name) for name in ("noise_error", "motion_error", "structure_error")}
    rows = [
        {
            "name": found.base.names[k],
            "formula": found.base.formulas[k],
            "unit": found.base.units[k],
            "value": float(estimate.beta[k]),
            "standard_error": float(errors[k]),
            "interval_95": [float(estimate.beta[k] - 1.96 * errors[k]), float(estimate.beta[k] + 1.96 * errors[k])],
            "relative_percent": float(100.0 * errors[k] / abs(estimate.beta[k])) if estimate.beta[k] else math.inf,
            "free_value": float(found.free.beta[k]),
            "impossible_sign": bool(signs[0][k]),
            "free_impossible_sign": bool(signs[1][k]),
            "rounding_shift": None if shift is None else float(shift[k]),
            **{name: None if part is None else float(part[k]) for name, part in parts.items()},
        }
        for k in range(found.base.rank)
    ]
    links = found.robot.inertial_count
    # What the structure says of every parameter; those of friction that was given come last.
    classes = [*found.base.classes, *["known"] * (len(found.model.theta) - len(found.base.classes))]
    document = {
        "schema": 1,
        "robot": {
            "name": found.robot.name,
            "joints": list(found.robot.joint_names),
            "gravity": [float(g) for g in found.robot.gravity],
            "torque_used": [n for n, u in zip(found.robot.joint_names, found.robot.torque_used, strict=True) if u],
        },
        "settings": {
            **found.settings.to_json(),
            "terms": [{"kind": t.name, "on": t.on, "where": t.where, **t.options} for t in found.model.terms.terms],
            "cutoff_hz": found.cutoff_hz,
            "score_cutoff_hz": found.score_cutoff_hz,
            "velocity": found.velocity,
            "velocity_delay_s": dict(found.late_velocities),
        },
        "band": None if found.band is None else found.band.to_json(),
        "torque_between": None if found.between is None else found.between.to_json(),
        "delay": None if found.delay is None else found.delay.to_json(),
        "structure": None if found.structure is None else found.structure.to_json(),
        "between_logs": None if found.agreement is None else found.agreement.to_json(),
        "assumptions": None if found.assumptions is None else found.assumptions.to_json(),
        "error_without_known_friction_percent": found.without_known_friction,
        "verdict": asdict(found.verdict),
        "torque_error": found.torque_error.to_json(),
        "torque_band": found.torque_band.to_json(),
        "physically_consistent": found.possible,
        "base_parameters": {
            "count": found.base.rank,
            "condition_number": found.condition_number,
            "condition_of": "base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm",
            "list": rows,
        },
        "parameters": [
            {"name": p.name, "unit": p.unit, "value": float(v), "class": c}
            for p, v, c in zip(found.model.dynamics.parameters, found.model.theta, classes, strict=True)
        ],
        "links": [
            {"name": link.name, "smallest_pseudo_inertia_eigenvalue": float(e)}
            for link, e in zip(found.robot.links, smallest_pseudo_eigenvalues(found.model.theta[:links]), strict=True)
        ],
        "estimation": {
            "result": estimate.result.value,
            "notes": list(estimate.notes),
            "cost": float(estimate.cost),
            "residual_standard_deviation": [float(s) for s in estimate.residual_std],
        },
        "significance": _significance(found),
        "check": [{"log": name, **check.to_json()} for name, check in found.checks],
        "check_of_validation": [{"log": name, **check.to_json()} for name, check in found.judged_checks],
        "copies": [copy.to_json() for copy in found.copies],
        "identification": [s.to_json() for s in found.identification],
        "validation": [s.to_json() for s in found.validation],
        "validation_of_the_free_fit": [s.to_json() for s in found.free_validation],
        "nominal": [s.to_json() for s in found.nominal],
        "files": [f.to_json() for f in found.files],
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
    """Say which terms of a model are below their bounds, so that MuJoCo could not simulate it."""
    values = model.theta[model.robot.inertial_count :]
    names = [p.name for p, v, least in zip(model.terms.parameters, values, model.terms.lower, strict=True) if v < least]
    return f"{', '.join(names)} of this model would feed energy into a simulation; {IDENTIFY_POSSIBLE}."


def _significance(found: Identification) -> dict[str, Any] | None:
    """What `significant` took away from the free fit; None if it was not asked for."""
    if found.reduced is None:
        return None
    removals: Removals = found.reduced.details["removals"]
    return {
        "level": removals.level,
        "removed": [{"name": s.name, "t": float(s.t), "p": float(s.p)} for s in removals.steps],
        "joint_test": {"F": float(removals.F), "p": float(removals.p)},
        "cost_rise_percent": float(removals.cost_rise_percent),
        "delivered": not found.settings.physical,
        "values": [float(b) for b in found.reduced.beta],
        "standard_errors": [float(e) for e in found.reduced.standard_errors],
        "validation": [s.to_json() for s in found.reduced_validation],
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
