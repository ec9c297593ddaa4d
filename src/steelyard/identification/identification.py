"""`Identification`: what an identification found, and what decided it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.assessment.pooled import TorqueError, pool_scores
from steelyard.assessment.score import Score
from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import Estimate
from steelyard.ground.arrays import Array
from steelyard.ground.displayed import Displayed, Glance, NamedColumns
from steelyard.ground.field import Field
from steelyard.ground.renamed import renamed
from steelyard.ground.schema import build
from steelyard.identification._verdict import NOT_JUDGED, Verdict
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
    from steelyard.identification.file_scores import FileScore
    from steelyard.identification.format_models import FormatModel
    from steelyard.identification.structure import FoundStructure
    from steelyard.regression.band import BandChoice
    from steelyard.regression.delay import DelayEstimate
    from steelyard.regression.torque_between import BetweenChoice


@renamed(score_cutoff="score_cutoff_hz")
@dataclass(frozen=True)
class IdentificationSettings:
    """All that decides an identification besides the robot and the logs; stored with the result."""

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
        """As files have it: `cutoff` and `score_cutoff`, in Hz, have no unit in their names there."""
        return asdict(self, dict_factory=lambda pairs: {k.removesuffix("_hz"): v for k, v in pairs})

    @staticmethod
    def from_field(entry: Field) -> IdentificationSettings:
        """What `to_json` wrote, as it stands in a file: the table `entry`."""
        values = {f"{k}_hz" if k == "score_cutoff" else k: item for k, item in entry.entries().items()}
        smooth = values.pop("preparation", entry.inside({}, "preparation"))
        how = {f"{k}_hz" if k == "cutoff" else k: item.value for k, item in smooth.entries().items()}
        rest = {k: item.value for k, item in values.items()}
        return build(
            IdentificationSettings,
            replace(entry, value=rest),
            preparation=build(Preparation, replace(smooth, value=how)),
        )


@renamed(cutoff="cutoff_hz", score_cutoff="score_cutoff_hz", physically_consistent="possible")
@dataclass(frozen=True, eq=False, repr=False)
class Identification(Displayed):
    """What was found: the model, its base parameters with error bars, and how well it predicts.

    A result: it holds numbers, and computes nothing when it is read, printed or written.
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
    # With `significant`: the free fit without the parameters that the data do not support, and how it predicts.
    reduced: Estimate | None = None
    reduced_validation: tuple[Score, ...] = ()
    # How left-out blocks chose the cut-off; None: it was given, or no torque rows are fitted.
    band: BandChoice | None = None
    # How the torque runs between samples; None: the scheme states it, or nobody looked.
    between: BetweenChoice | None = None
    # The delay of the torques that the logs showed and the rows were aligned by; None: none, or it was stated.
    delay: DelayEstimate | None = None
    # Joints whose logged velocity is late and was shifted, by name, s.
    late_velocities: Mapping[str, float] = field(default_factory=dict)
    # What the search for the structure tried on the identification logs, and chose; None: the terms were given.
    structure: FoundStructure | None = None
    # Of several logs: how far their own answers spread, which one disagrees, and by what; None: there was one.
    agreement: Agreement | None = None
    # What the logs say of every number that the fit takes for granted; None: nobody looked.
    assumptions: Ledger | None = None
    # Of friction that was known before: the fitted logs' mean error, % of the torque, if it is found in them instead.
    without_known_friction: float | None = None
    # What `check` says of the logs that were identified from (of long ones: their first piece, all channels), by name.
    checks: tuple[tuple[str, Check], ...] = ()
    # The same of the logs that it is judged by.
    judged_checks: tuple[tuple[str, Check], ...] = ()
    # Logs to judge by that repeat one that was fitted to, as a whole or in part.
    copies: tuple[Copy, ...] = ()
    # For every kind of robot file the best model that it can hold, and how the written file predicts.
    formats: tuple[FormatModel, ...] = ()
    files: tuple[FileScore, ...] = ()
    # Whether to trust the model, and why.
    verdict: Verdict = NOT_JUDGED

    @property
    def condition_number(self) -> float:
        """cond₂ of the base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm."""
        least = float(self.singular_values[-1])
        return float(self.singular_values[0] / least) if least > 0.0 else float("inf")

    @property
    def delay_sentence(self) -> str:
        """Say by which delay the torques were aligned with the motion; empty: by none that the logs showed."""
        if self.delay is None:
            return ""
        return (
            f"The torques of all joints are {self.delay.text}; the rows are aligned by that "
            f"(as --delay {self.delay.delay_s:.5f} does; --delay 0 keeps the stamps of the log)."
        )

    @property
    def judging_scores(self) -> tuple[Score, ...]:
        """The scores on logs that took no part in the fit; where there are none, those on the fitted logs."""
        copies = {copy.log for copy in self.copies if not copy.cut}
        return tuple(s for s in self.validation if s.log not in copies) or self.identification

    @property
    def torque_error(self) -> TorqueError:
        """The headline: the error over all rows of all logs that judge, joint by joint."""
        scores = self.judging_scores
        return pool_scores(scores, unseen=scores is not self.identification)

    @property
    def torque_band(self) -> TorqueBand:
        """The band around predicted torques that holds 95 % of the measured ones."""
        from steelyard.identification.parts import torque_band_of

        return torque_band_of(self)

    def glance(self) -> Glance:
        from steelyard.identification.glance import identification_glance

        return identification_glance(self)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Base parameters with error bars ("parameters"), all of the "model", "scores", and "signals"."""
        from steelyard.identification.glance import identification_tables

        return identification_tables(self)

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Those of the report: torque, residuals, friction, parameters, correlation, singular_values."""
        from steelyard.identification.glance import identification_figures

        return identification_figures(self)

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, period: float | None = None) -> Array:
        """Joint torques at positions `q` (rad, m), velocities `dq` and accelerations `ddq`, all `(samples, joints)`.

        Where friction remembers, rows are consecutive samples of one motion, `period` seconds apart (see `Model`). The
        torque is then that of a log: where the torques of the logs have a delay (`settings.preparation.delay`),
        so has this one. `model.torque` is that of the robot itself.
        """
        delay = self.settings.preparation.delay
        if delay and period:  # the motion is smooth, the torque is not
            q, dq, ddq = (delayed(np.asarray(x, dtype=np.float64), delay / period) for x in (q, dq, ddq))
        return self.model.torque(q, dq, ddq, period)

    def simulate(self, *arguments: Any, **options: Any) -> Any:
        """`steelyard.simulate` with the identified model; `arguments` and `options` are its own, after the model."""
        from steelyard.simulation import simulate

        return simulate(self.model, *arguments, **options)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report to `path`, one self-contained HTML page."""
        from steelyard.ground.files import write_whole
        from steelyard.identification.page import identification_report

        write_whole(path, identification_report(self))

    def save(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False, source: str | os.PathLike[str] | None = None
    ) -> Path:
        """Write a run folder as `steelyard identify` does: result, report, models, tables; whole or not at all.

        Args:
            folder: where to; its parents are made.
            overwrite: replace an existing run, whole.
            source: the robot's URDF or MJCF, of which the written URDF keeps meshes and names; default: the file that
                the robot was read from.
        """
        from steelyard.identification.run import IdentificationRun

        described = self._description if source is None else Path(source)
        return IdentificationRun(self, (), described).save(folder, overwrite=overwrite)

    @property
    def files_to_write(self) -> tuple[FormatModel, ...]:
        """What the robot files of a run hold: `formats`, or the full model as far as a format can hold it."""
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
        """The file that the robot was read from, where it can be written again with other numbers."""
        path = Path(self.robot.source or ".")
        return path if path.suffix.lower() in (".urdf", ".xml") and path.is_file() else None

    def to_urdf(self, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Write the best model that a URDF can hold to `path`: the URDF `source` with other numbers.

        `source` is by default the file that the robot was read from, where it is a URDF; its meshes and names stay.
        The full model goes into a sidecar beside it. Returns in words what the URDF leaves out.
        """
        from steelyard.export import model_to_sidecar, sidecar_path

        notes = self._written("urdf", path, source)
        model_to_sidecar(self.model, sidecar_path(path), {f.name: f.model for f in self.formats})
        return notes

    def to_mjcf(self, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Write the best model that an MJCF can hold to `path`; returns in words what it leaves out.

        `source` is by default the file that the robot was read from, where it is an MJCF: all of it but numbers stays.
        """
        return self._written("mjcf", path, source)

    def to_pinocchio(self) -> Any:
        """The best model of a `pinocchio.Model`, with armature, damping and friction; joints by their names."""
        from steelyard.export import model_to_pinocchio

        return model_to_pinocchio(self._fitted("mjcf").model)

    def to_mujoco(self) -> Any:
        """The best model of a compiled `mujoco.MjModel`: armature, damping, frictionloss, a motor for each joint."""
        from steelyard.export import model_to_mujoco

        return model_to_mujoco(self._fitted("mjcf").model)

    def to_c(self, path: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
        """Write inverse dynamics, gravity and mass matrix as C99 functions `name`_…, to `path` (.c) and its header."""
        from steelyard.export import model_to_c

        return model_to_c(self.model, path, name)
