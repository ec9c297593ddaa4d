"""`Identification`: what an identification found, and what decided it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

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
from steelyard.signals.log import Finding
from steelyard.signals.prepare import Preparation

if TYPE_CHECKING:
    from steelyard.check import Check
    from steelyard.identification.agreement import Agreement
    from steelyard.identification.structure import FoundStructure


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
    # What the search for the structure tried on the identification logs, and chose; None: the terms were given.
    structure: FoundStructure | None = None
    # Of several logs: how far their own answers spread, which one disagrees, and by what; None: there was one.
    agreement: Agreement | None = None
    # Of friction that was known before: the fitted logs' mean error, % of the torque, if it is found in them instead.
    without_known_friction: float | None = None
    # What `check` says of the logs that were identified from (of long ones: their first piece, all channels), by name.
    checks: tuple[tuple[str, Check], ...] = ()
    # The same of the logs that it is judged by.
    judged_checks: tuple[tuple[str, Check], ...] = ()
    # Logs to judge by that repeat one that was fitted to: the names of both.
    copies: tuple[tuple[str, str], ...] = ()
    # Whether to trust the model, and why.
    verdict: Verdict = NOT_JUDGED

    @property
    def condition_number(self) -> float:
        """cond₂ of the base columns, rows weighted by 1/σ of their joint, columns scaled to unit norm."""
        least = float(self.singular_values[-1])
        return float(self.singular_values[0] / least) if least > 0.0 else float("inf")

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

        Where friction remembers, rows are consecutive samples of one motion, `period` seconds apart (see `Model`).
        """
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
    def _description(self) -> Path | None:
        """The file that the robot was read from, where it can be written again with other numbers."""
        path = Path(self.robot.source or ".")
        return path if path.suffix.lower() in (".urdf", ".xml") and path.is_file() else None

    def to_urdf(self, path: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
        """Write the model as URDF to `path`: the URDF `source` with other numbers, meshes and names as they were.

        `source` is by default the file that the robot was read from, where it is a URDF. What URDF cannot hold goes
        into a sidecar beside it, and is returned in words.
        """
        from steelyard.export import model_to_sidecar, model_to_urdf, sidecar_path

        notes = model_to_urdf(self.model, path, self._description if source is None else source)
        model_to_sidecar(self.model, sidecar_path(path))
        return notes

    def to_mjcf(self, path: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the model as MJCF to `path`; returns in words what it cannot hold."""
        from steelyard.export import model_to_mjcf

        return model_to_mjcf(self.model, path)

    def to_pinocchio(self) -> Any:
        """The model as a `pinocchio.Model` with armature, damping and friction; joints by their names."""
        from steelyard.export import model_to_pinocchio

        return model_to_pinocchio(self.model)

    def to_mujoco(self) -> Any:
        """The model as a compiled `mujoco.MjModel` with armature, damping, frictionloss and a motor for each joint."""
        from steelyard.export import model_to_mujoco

        return model_to_mujoco(self.model)

    def to_c(self, path: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
        """Write inverse dynamics, gravity and mass matrix as C99 functions `name`_…, to `path` (.c) and its header."""
        from steelyard.export import model_to_c

        return model_to_c(self.model, path, name)
