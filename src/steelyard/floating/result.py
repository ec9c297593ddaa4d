"""`FloatingIdentification`: an identified mechanism with a free base, contacts, or several bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export import (
    covariance_to_csv,
    loops_to_table,
    model_to_mjcf,
    model_to_sidecar,
    model_to_urdf,
    parameters_to_csv,
)
from steelyard.floating.closed_loops import loop_sentence
from steelyard.floating.sensor_errors import SensorErrors
from steelyard.floating.weighted_fit import PossibleFit
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, file_name
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot

# Limits of the error in percent of the variation of the measurements, as for arms: good model, insufficient model.
EXPLAINS_WELL, EXPLAINS_TOO_LITTLE = 12.0, 33.0
# A larger relative standard error determines at best the sign of a base parameter (95 % of a normal distribution).
_UNKNOWN = 0.5


@short_repr
@dataclass(frozen=True)
class RowScore:
    """Errors of rows outside of a fit.

    Attributes:
        name: Name of the rows: left-out stretches, or hold-out data.
        error: Norm of the errors relative to the norm of the measurements [%].
        described: The same of the description; infinite without one.
        variation: Norm of the errors relative to the variation of the measurements about their means [%].
        rms: Error of each equation (rms), in its unit.
        described_rms: The same of the description.
    """

    name: str
    error: float
    described: float
    variation: float
    rms: tuple[float, ...]
    described_rms: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class FloatingIdentification(OutcomeWithPage, DisplayMixin):
    """Possible bodies and joint terms of a mechanism.

    Attributes:
        robot: The mechanism.
        model: The identified model.
        fit: Fit with its error bars and the choice of the description's weight.
        equations: Names of the equations.
        scores: Scores on hold-out data; empty without them.
        described: Parameters of the description; None without one.
        findings: Remarks on the data, one sentence each.
        rows: Number of rows in the fit, and of left-out samples by reason.
        source: Description of the robot, with the meshes and names of the exported file.
        phases: Contact phases, for the report.
        loops: Closed loops: degrees of freedom, joints with and without encoder, gap; None without loops.
        errors: Delays and biases of sensors, which were subtracted; None: not estimated.
        cutoff_hz: Cut-off of the low-pass of all signals [Hz]; 0 for rows without a log.
    """

    robot: Robot
    model: Model
    fit: PossibleFit
    equations: tuple[str, ...]
    scores: tuple[RowScore, ...] = ()
    described: Array | None = None
    findings: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    source: Path | None = None
    phases: tuple[Mapping[str, Any], ...] = ()
    loops: Mapping[str, Any] | None = None
    errors: SensorErrors | None = None
    cutoff_hz: float = 0.0

    @property
    def structural_rank(self) -> int:
        """Number of base parameters of the mechanism and its sensors."""
        return self.fit.structure.rank

    def verdict(self) -> Headline:
        """Rate the result by rows outside of the fit, and by the number of determined base parameters."""
        fit, described = self.fit, self.fit.described
        left_out, points = fit.chosen.error, []
        points.append(
            f"Stretches of time left out in turn: error {number(left_out, 3)} % of the measurements"
            + ("." if described is None else f"; {number(described.error, 3)} % with the description.")
        )
        points += [
            f"{score.name}: error {number(score.error, 3)} %"
            + (f"; {number(score.described, 3)} % with the description." if np.isfinite(score.described) else ".")
            for score in self.scores
        ]
        determined, known = fit.base.rank, int(np.sum(self.relative_errors < _UNKNOWN))
        points.append(
            f"The rows determine {determined} of {self.structural_rank} base parameters; {known} have a relative "
            f"standard error below {_UNKNOWN:.0%}. The description decides the others."
        )
        better = described is None or fit.chosen.deviation < described.deviation
        improves = all(not np.isfinite(s.described) or s.error < s.described for s in self.scores)
        points += self.findings
        if self.loops is not None:
            points.append(loop_sentence(self.loops))
        if not better or not improves:
            return Headline("bad", "The logs do not improve the description; do not use this model.", tuple(points))
        varied = max((s.variation for s in self.scores), default=fit.variation)
        points.insert(0, f"Error relative to the variation of the measurements: {number(varied, 3)} %.")
        if varied > EXPLAINS_TOO_LITTLE:
            sentence = "The model explains too little of the measurements; do not use it."
            return Headline("bad", sentence, tuple(points))
        if determined < self.structural_rank or 2 * known < determined or varied > EXPLAINS_WELL:
            sentence = "The model predicts better than the description, which still decides part of it."
            if described is None:
                sentence = "The model is usable with the reservations below."
            return Headline("warning", sentence, tuple(points))
        return Headline("good", "The mechanism is identified.", tuple(points))

    headline = verdict

    @property
    def relative_errors(self) -> Array:
        """Standard errors of the base parameters relative to their values."""
        size = np.abs(self.fit.estimate.beta)
        errors = self.fit.estimate.standard_errors
        return np.divide(errors, size, out=np.full_like(size, np.inf), where=size > 0.0)

    @property
    def bodies(self) -> Array:
        """Ten parameters of each body, shape (bodies, 10)."""
        return np.asarray(self.model.theta[: self.robot.inertial_count].reshape(-1, 10))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Bodies ("bodies"), base parameters ("base") and weights of the description ("weights")."""
        return {"bodies": self.body_columns, "base": self._base_columns, "weights": self._weight_columns}

    def body_columns(self) -> NamedColumns:
        """Mass and centre of mass of each body, described and identified."""
        ten, share = self.bodies, self.fit.data_share.reshape(-1)[: self.robot.inertial_count].reshape(-1, 10)
        error = self.fit.theta_error[: self.robot.inertial_count].reshape(-1, 10)
        mass = np.where(ten[:, 0] > 0.0, ten[:, 0], np.nan)
        columns: dict[str, Any] = {
            "body": self.robot.link_names,
            "mass": ten[:, 0],
            "standard_error": error[:, 0],
            "share_of_data": share[:, 0],
            **{f"c{x}": ten[:, 1 + k] / mass for k, x in enumerate("xyz")},
        }
        if self.described is not None:
            columns["described_mass"] = self.described[: self.robot.inertial_count].reshape(-1, 10)[:, 0]
        return columns

    def _base_columns(self) -> NamedColumns:
        estimate = self.fit.estimate
        return {
            "name": estimate.base.names,
            "formula": estimate.base.formulas,
            "unit": estimate.base.units,
            "value": estimate.beta,
            "standard_error": estimate.standard_errors,
        }

    def _weight_columns(self) -> NamedColumns:
        return {
            "weight": [c.weight for c in self.fit.candidates],
            "left_out_error_percent": [c.error for c in self.fit.candidates],
            "left_out_deviation": [c.deviation for c in self.fit.candidates],
        }

    def to_json(self) -> dict[str, Any]:
        verdict, fit = self.verdict(), self.fit
        parameters, numbers = self.model.dynamics.parameters, (self.model.theta, fit.theta_error, fit.data_share)
        names, units = [p.name for p in parameters], [p.unit for p in parameters]
        base = self._base_columns()
        return {
            "schema": 1,
            "robot": {"name": self.robot.name, "bodies": list(self.robot.link_names), "joints": self._joints()},
            "verdict": {"kind": verdict.kind, "headline": verdict.sentence, "points": list(verdict.points)},
            "equations": [
                {"name": n, "noise": float(s)} for n, s in zip(self.equations, fit.noise, strict=True)
            ],
            "rows": dict(self.rows),
            "phases": [dict(p) for p in self.phases],
            **({"loops": dict(self.loops)} if self.loops is not None else {}),
            **({"sensor_errors": self.errors.table()} if self.errors is not None else {}),
            "left_out": [
                {
                    "weight": "description alone" if np.isinf(c.weight) else c.weight,
                    "error_percent": c.error,
                    "deviation": c.deviation,
                    "chosen": c is fit.chosen,
                }
                for c in fit.candidates
            ],
            "hold_out": [
                {
                    "name": s.name,
                    "error_percent": s.error,
                    "variation_error_percent": s.variation,
                    "described_error_percent": s.described if np.isfinite(s.described) else "no description",
                    "rms": list(s.rms),
                    "described_rms": list(s.described_rms),
                }
                for s in self.scores
            ],
            "base_parameters": {
                "count": fit.base.rank,
                "structural": self.structural_rank,
                "list": [dict(zip(base, map(_plain, row), strict=True)) for row in zip(*base.values(), strict=True)],
            },
            "parameters": [
                dict(zip(("name", "unit", "value", "standard_error", "share_of_data"), row, strict=True))
                for row in zip(names, units, *(x.tolist() for x in numbers), strict=True)
            ],
            "physically_consistent": self.model.possible,
            "estimation": {"result": fit.estimate.result.value, "notes": list(fit.estimate.notes)},
        }  # fmt: skip

    def _joints(self) -> list[dict[str, Any]]:
        used = self.robot.torque_used
        return [
            {"name": j.name, "kind": j.kind, "torque_used": bool(u)}
            for j, u in zip(self.robot.joints, used, strict=True)
        ]

    def files(self) -> dict[str, Content]:
        name = file_name(self.robot.name)
        out: dict[str, Content] = {
            "parameters.csv": lambda path: parameters_to_csv(self.model, path, self.fit.theta_error),
            "covariance.csv": lambda path: covariance_to_csv(self.fit.base.names, self.fit.estimate.covariance, path),
            f"{name}.steelyard.json": lambda path: model_to_sidecar(self.model, path),
        }
        if self.loops is not None:
            stated = self._stated_loops()
            if self.robot.actuated or self.robot.start or len(stated) < len(self.robot.loops):
                out[f"{name}.loops.toml"] = lambda path: loops_to_table(self.robot, path, stated)
        writers: dict[str, Callable[[Path], object]] = {
            f"{name}.urdf": lambda path: model_to_urdf(self.model, path, self.source),
            f"{name}.xml": lambda path: model_to_mjcf(self.model, path, self.source),
        }
        return out | {file: write for file, write in writers.items() if self._can(write)}

    def _stated_loops(self) -> tuple[str, ...]:
        """Return the loops that the exported URDF represents by joints."""
        if self.source is None or self.source.suffix.lower() != ".urdf":
            return ()
        return tuple(loop.name for loop in self.robot.loops if loop.cut)

    def _can(self, write: Callable[[Path], object]) -> bool:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            try:
                write(Path(folder) / "robot")
            except ExportError:
                return False
        return True

    def view(self) -> Presentation:
        from steelyard.floating.page import floating_report, print_floating

        return floating_report, print_floating


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)
