"""`Identification`: the result of `identify`, with its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.assessment.score import Score
from steelyard.assessment.torque_error import TorqueError, pool_scores
from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import Estimate
from steelyard.ground.arrays import Array
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.identification._verdict import NOT_GRADED, Verdict
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.signals.filters import delayed
from steelyard.signals.log import Finding
from steelyard.signals.prepare import Preparation

if TYPE_CHECKING:
    from steelyard.assessment.torque_band import TorqueBand
    from steelyard.assumptions.ledger import Ledger
    from steelyard.check import Check
    from steelyard.identification._copies import Copy
    from steelyard.identification.agreement import Agreement
    from steelyard.identification.description_share import DescriptionShare
    from steelyard.identification.file_scores import FileScore
    from steelyard.identification.format_models import FormatModel
    from steelyard.identification.structure import StructureChoice
    from steelyard.regression.band import BandChoice
    from steelyard.regression.delay import DelayEstimate
    from steelyard.regression.torque_between import BetweenChoice


@dataclass(frozen=True)
class IdentificationSettings:
    """Settings of an identification; stored with the result."""

    scheme: str = "dynamic"
    estimator: str = "wls"
    physical: bool = True
    prior: str = "nominal"
    preparation: Preparation = field(default_factory=Preparation)
    score_cutoff_hz: float | None = None
    significant: bool = False
    plain: bool = False
    known_friction: tuple[str, ...] = ()
    controller: str = ""

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values; in files the names of `cutoff` and `score_cutoff` [Hz] have no unit."""
        return asdict(self, dict_factory=lambda pairs: {k.removesuffix("_hz"): v for k, v in pairs})

    @staticmethod
    def from_field(entry: Field) -> IdentificationSettings:
        """Read the settings that `to_json` wrote from the table `entry` of a file."""
        values = {f"{k}_hz" if k == "score_cutoff" else k: item for k, item in entry.entries().items()}
        smooth = values.pop("preparation", entry.inside({}, "preparation"))
        prepared = {f"{k}_hz" if k == "cutoff" else k: item.value for k, item in smooth.entries().items()}
        rest = {k: item.value for k, item in values.items()}
        return build(
            IdentificationSettings,
            replace(entry, value=rest),
            preparation=build(Preparation, replace(smooth, value=prepared)),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Identification(DisplayMixin):
    """An identified model with its base parameters, error bars, scores and verdict.

    It stores finished numbers and computes nothing when it is read, printed or written.
    """

    robot: Robot
    settings: IdentificationSettings
    base: BaseParameters
    estimate: Estimate
    free: Estimate
    model: Model
    cutoff_hz: float
    score_cutoff_hz: float
    singular_values: Array
    possible: bool
    findings: tuple[tuple[str, Finding], ...]
    velocity: str
    identification: tuple[Score, ...]
    validation: tuple[Score, ...]
    free_validation: tuple[Score, ...]
    nominal: tuple[Score, ...]
    # With `significant`: the free fit without insignificant parameters, and its scores.
    reduced: Estimate | None = None
    reduced_validation: tuple[Score, ...] = ()
    # Selection of the cut-off by cross-validation; None: it was given, or no torque rows are fitted.
    band: BandChoice | None = None
    # Course of the torque between samples; None: the scheme determines it, or it was not tested.
    between: BetweenChoice | None = None
    # Estimated delay of the torques, which is corrected in the rows; None: not detected, or it was given.
    delay: DelayEstimate | None = None
    # Corrected delays of the logged velocities by joint [s].
    late_velocities: Mapping[str, float] = field(default_factory=dict)
    # Result of the structure search; None: the terms were given.
    structure: StructureChoice | None = None
    # Comparison of the identification logs; None: there was only one.
    agreement: Agreement | None = None
    # Tests of the assumptions of the fit; None: they were not tested.
    assumptions: Ledger | None = None
    # Contribution of the robot description to the model; None: it is not physically possible or has no motion scores.
    description: DescriptionShare | None = None
    # With known friction: mean error on the fitted logs with fitted friction instead [% of the torque].
    without_known_friction: float | None = None
    # Checks of the identification logs by name; of long logs only the beginning, all channels.
    checks: tuple[tuple[str, Check], ...] = ()
    # Checks of the validation logs by name.
    validation_checks: tuple[tuple[str, Check], ...] = ()
    # Validation logs that repeat a fitted log, as a whole or in part.
    copies: tuple[Copy, ...] = ()
    # Best model that each robot file format can store, and the scores of the written files.
    formats: tuple[FormatModel, ...] = ()
    files: tuple[FileScore, ...] = ()
    verdict: Verdict = NOT_GRADED

    @property
    def condition_number(self) -> float:
        """Condition number (2-norm) of the base columns, rows weighted by 1/σ of their joint, columns of unit norm."""
        least = float(self.singular_values[-1])
        return float(self.singular_values[0] / least) if least > 0.0 else float("inf")

    @property
    def delay_sentence(self) -> str:
        """State the estimated delay that was corrected; "" without a delay."""
        if self.delay is None:
            return ""
        return (
            f"The torques of all joints are {self.delay.text}. This is corrected, as by --delay "
            f"{self.delay.delay_s:.5f}. To keep the time stamps of the log, give --delay 0."
        )

    @property
    def evaluation_scores(self) -> tuple[Score, ...]:
        """Scores on validation logs other than copies; without such logs, the scores on the fitted logs."""
        copies = {copy.log for copy in self.copies if not copy.cut}
        return tuple(s for s in self.validation if s.log not in copies) or self.identification

    @property
    def torque_error(self) -> TorqueError:
        """Error of each joint over all rows of the evaluation logs."""
        scores = self.evaluation_scores
        return pool_scores(scores, unseen=scores is not self.identification)

    @property
    def torque_band(self) -> TorqueBand:
        """Band around predicted torques that contains 95 % of the measured ones."""
        from steelyard.identification.torque_parts import torque_band_of

        return torque_band_of(self)

    def headline(self) -> Headline:
        from steelyard.identification.notebook import identification_headline

        return identification_headline(self)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return the tables: base parameters with error bars ("parameters"), "model", "scores" and "signals"."""
        from steelyard.identification.notebook import identification_tables

        return identification_tables(self)

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Return the figures: torque, residuals, friction, parameters, correlation, singular_values."""
        from steelyard.identification.notebook import identification_figures

        return identification_figures(self)

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, period: float | None = None) -> Array:
        """Predict the joint torques of a log, shape (samples, joints) [N m, N].

        If the torques of the logs have a delay (`settings.preparation.delay`), so does the prediction. `model.torque`
        gives the torque of the robot itself.

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s], shape (samples, joints).
            ddq: Accelerations [rad/s^2, m/s^2], shape (samples, joints).
            period: Sampling period [s] of consecutive rows; required for friction with hysteresis (see `Model`).
        """
        delay = self.settings.preparation.delay
        if delay and period:  # Shift the motion, which is smoother than the torque.
            q, dq, ddq = (delayed(np.asarray(x, dtype=np.float64), delay / period) for x in (q, dq, ddq))
        return self.model.torque(q, dq, ddq, period)

    def simulate(self, *arguments: Any, **options: Any) -> Any:
        """Simulate the identified model with `steelyard.simulate`.

        Args:
            *arguments: Arguments of `steelyard.simulate` after the model.
            **options: Keyword arguments of `steelyard.simulate`.
        """
        from steelyard.simulation import simulate

        return simulate(self.model, *arguments, **options)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report to `path` as one self-contained HTML page."""
        from steelyard.ground.files import write_whole
        from steelyard.identification.page import identification_report

        write_whole(path, identification_report(self))

    def save(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False, source: str | os.PathLike[str] | None = None
    ) -> Path:
        """Write a complete run folder as `steelyard identify` does: result, report, models and tables.

        Args:
            folder: Run folder; missing parents are created.
            overwrite: Whether to replace an existing run.
            source: URDF or MJCF of the robot; the written URDF keeps its meshes and names. Default: the file that the
                robot was read from.
        """
        from steelyard.identification.identification_run import IdentificationRun

        described = self._description if source is None else Path(source)
        return IdentificationRun(self, (), described).save(folder, overwrite=overwrite)

    @property
    def files_to_write(self) -> tuple[FormatModel, ...]:
        """Models of the robot files of a run: `formats`, or the full model without the terms that a format lacks."""
        from steelyard.export.capability import FITTED
        from steelyard.identification.format_models import FormatModel

        return self.formats or tuple(FormatModel(name, self.model, {}) for name in FITTED)

    def _fitted(self, name: str) -> FormatModel:
        return next(f for f in self.files_to_write if f.name == name)

    def _written(
        self, name: str, path: str | os.PathLike[str], source: str | os.PathLike[str] | None
    ) -> tuple[str, ...]:
        return self._fitted(name).write(Path(path), self._description if source is None else Path(source))

    @property
    def _description(self) -> Path | None:
        """File that the robot was read from, if it can be written again with other numbers."""
        path = Path(self.robot.source or ".")
        return path if path.suffix.lower() in (".urdf", ".xml") and path.is_file() else None

    def to_urdf(self, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Write the best model that a URDF can store, and the full model as a sidecar file.

        Args:
            path: URDF to write.
            source: URDF with meshes and names to keep. Default: the file that the robot was read from.

        Returns:
            Notes on what the URDF omits.
        """
        from steelyard.export import model_to_sidecar, sidecar_path

        notes = self._written("urdf", path, source)
        model_to_sidecar(self.model, sidecar_path(path), {f.name: f.model for f in self.formats})
        return notes

    def to_mjcf(self, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Write the best model that an MJCF can store.

        Args:
            path: MJCF to write.
            source: MJCF to keep except for its numbers. Default: the file that the robot was read from.

        Returns:
            Notes on what the MJCF omits.
        """
        return self._written("mjcf", path, source)

    def to_pinocchio(self) -> Any:
        """Convert to a `pinocchio.Model` with armature, damping and friction; joints keep their names."""
        from steelyard.export import model_to_pinocchio

        return model_to_pinocchio(self._fitted("mjcf").model)

    def to_mujoco(self) -> Any:
        """Convert to a compiled `mujoco.MjModel` with armature, damping, frictionloss and a motor per joint."""
        from steelyard.export import model_to_mujoco

        return model_to_mujoco(self._fitted("mjcf").model)

    def to_c(self, path: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
        """Write inverse dynamics, gravity and mass matrix as C99 functions.

        Args:
            path: C file to write; its header is written to the same folder.
            name: Prefix of the function names.
        """
        from steelyard.export import model_to_c

        return model_to_c(self.model, path, name)
