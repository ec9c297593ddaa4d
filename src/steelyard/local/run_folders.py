"""Run folders of region motions and of banks: plain JSON that cannot execute code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError
from steelyard.excitation.fitness import NO_MEAN, Fitness
from steelyard.excitation.trajectories.trajectory import motion_rows
from steelyard.export import load_model, model_to_sidecar, model_to_urdf, read_sidecar
from steelyard.ground.field import Field
from steelyard.ground.files import csv_text, plain
from steelyard.ground.outcome import Content, Outcome, json_text
from steelyard.ground.reasons import explained
from steelyard.ground.repeat import with_command
from steelyard.ground.short_repr import short_repr
from steelyard.ground.untrusted_files import read_json
from steelyard.identification.identification import IdentificationSettings
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.motions import MotionLike, motion_from_dict, motion_to_dict
from steelyard.local.region import Region, region_from_dict
from steelyard.parameters.term import TERMS, make_term
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.local.recalibrate import ModelDrift

_MOTIONS = "steelyard.local-motions/1"
_BANK = "steelyard.bank/1"
# Key in a local model's file -> field of `LocalModel`.
_ARRAYS = {"beta": "beta", "covariance": "covariance", "spread": "residual_std"}
_OPTIONAL = {"deviations": "deviations"}  # not in banks of earlier versions
_NUMBERS = {"cutoff": "cutoff_hz", "seconds": "seconds", "inside": "inside"}
_RATE = 500.0
_MOST = 1000  # regions
# Options of a family of motions may be null in result.json. A repeated motion contains another motion, so they occur at
# two depths.
_FREE = "The family of motions does not fix this value."
_WHY_NULL = {"regions/*/fitness/*/mean": NO_MEAN} | {
    f"regions/*/trajectory/{inside}joints/*/*": _FREE for inside in ("", "motion/")
}


@short_repr
@dataclass(frozen=True, eq=False)
class RegionMotions(Outcome):
    """A motion for each region, to be played on the robot, and the fitness per generation of genetic searches."""

    robot: Robot
    regions: Sequence[Region]
    motions: Mapping[str, MotionLike]
    fitness: Mapping[str, Fitness] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        document = {
            "schema": _MOTIONS,
            "robot": self.robot.name,
            "joints": list(self.robot.joint_names),
            "regions": [
                {
                    "name": r.name,
                    **r.to_dict(),
                    "duration": self.motions[r.name].duration,
                    "trajectory": motion_to_dict(self.motions[r.name]),
                    **({"fitness": self.fitness[r.name].to_json()} if r.name in self.fitness else {}),
                }
                for r in self.regions
            ],
        }
        return explained(document, _WHY_NULL)

    def files(self) -> dict[str, Content]:
        """Return a table of samples per region, and a table of generations for each genetic search."""
        tables: dict[str, Content] = {f"{r.name}.csv": _samples(self.robot, self.motions[r.name]) for r in self.regions}
        return tables | {f"{name}-fitness.csv": one.csv() for name, one in self.fitness.items()}

    def page(self) -> str | None:
        from steelyard.local.page import motions_report

        return motions_report(self) if self.fitness else None

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        lines = [f"{region.name}: {self.motions[region.name].duration:.2f} s" for region in self.regions]
        if folder:
            more = ", NAME-fitness.csv and report.html: the generations" if self.fitness else ""
            lines.append(f"Written to {folder}: result.json, a trajectory (JSON, CSV) per region{more}")
        say(out, "\n".join(lines))


def read_motions(folder: str | os.PathLike[str], robot: Robot) -> dict[str, MotionLike]:
    """Read the motions that `RegionMotions.save` wrote, by region.

    Args:
        folder: Folder with result.json.
        robot: Robot of the motions.
    """
    path = Path(folder) / "result.json"
    data = read_json(path, LocalError, "give a folder of `steelyard local design`", exact=True)
    if data.table((), ("schema",), others=True).get("schema", data).value != _MOTIONS:
        raise LocalError(f"{folder}: holds no designed motions; give a folder of `steelyard local design`.")
    content = data.table(("joints", "regions"), others=True)
    joints = content["joints"].texts()
    if joints != list(robot.joint_names):
        raise LocalError(f"{folder}: the motions are for another robot, with joints {', '.join(joints)}.")
    entries = [item.table(("name", "trajectory"), others=True) for item in content["regions"].items("region", _MOST)]
    return {entry["name"].text(): motion_from_dict(entry["trajectory"], robot) for entry in entries}


def _samples(robot: Robot, motion: MotionLike) -> str:
    t = np.arange(int(motion.duration * _RATE) + 1) / _RATE
    return csv_text(motion_rows(robot.joint_names, t, *motion.sample(t)))


@short_repr
@dataclass(frozen=True, eq=False)
class BankRun(Outcome):
    """A bank as a run folder: result.json, a folder per region, report.html.

    Physically possible models are also written as URDF. After a recalibration `drift` describes the change; it is
    printed and added to result.json.
    """

    bank: Bank
    drift: ModelDrift | None = None

    def to_json(self) -> dict[str, Any]:
        return bank_json(self.bank) if self.drift is None else self.drift.to_json()

    def files(self) -> dict[str, Content]:
        more = {} if self.drift is None else {"drift": self.drift.to_json()}
        out: dict[str, Content] = {"result.json": json_text(with_command(explained({**bank_json(self.bank), **more})))}
        for local in self.bank.models:
            out |= {f"{local.name}/{name}": content for name, content in _local_files(local).items()}
        return out

    def page(self) -> str:
        from steelyard.local.page import bank_report

        return bank_report(self.bank, drift=self.drift)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.local.page import print_bank, print_drift

        if self.drift is None:
            print_bank(self.bank, out, folder)
        else:
            print_drift(self.drift, out, folder)


def save_bank(bank: Bank, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a bank to a folder, atomically.

    Args:
        bank: The bank.
        folder: Folder to create.
        overwrite: Replace an existing folder.
    """
    return BankRun(bank).save(folder, overwrite=overwrite, report=False)


def bank_json(bank: Bank) -> dict[str, Any]:
    """Return the content of result.json for a `bank`; the region folders contain the numbers of the models."""
    document = {
        "schema": _BANK,
        "robot": {
            "name": bank.robot.name,
            "fingerprint": bank.robot.fingerprint,
            "joints": list(bank.robot.joint_names),
            "gravity": bank.robot.gravity.tolist(),
        },
        "blend": bank.blend,
        "regions": [
            {
                "name": local.name,
                "kind": local.region.kind,
                **local.region.to_dict(),
                "physically_consistent": local.possible,
                "seconds": local.seconds,
                "inside": local.inside,
                "cutoff_hz": local.cutoff_hz,
                "residual_standard_deviation": local.residual_std.tolist(),
                "base_parameters": [
                    {"name": n, "formula": f, "unit": u, "value": float(v), "free_value": float(b), "standard_error": e}
                    for n, f, u, v, b, e in zip(*_columns(local), strict=True)
                ],
            }
            for local in bank.models
        ],
    }
    return explained(document)


def _columns(local: LocalModel) -> Sequence[Any]:
    base = local.base
    return base.names, base.formulas, base.units, local.values, local.beta, local.standard_errors.tolist()


def load_bank(folder: str | os.PathLike[str], robot: Robot) -> Bank:
    """Read a bank that `save_bank` wrote.

    Args:
        folder: Folder of the bank.
        robot: Robot with which the bank was made.
    """
    path = Path(folder)
    data = _read(path / "result.json")
    schema = data.table((), ("schema",), others=True).get("schema", data).value
    if schema != _BANK:
        raise LocalError(f"{path}: this is no bank of local models (its schema is not {_BANK!r}).")
    content = data.table(("robot", "regions", "blend"), others=True)
    own = content["robot"].table(("name", "fingerprint", "joints", "gravity"), others=True)
    joints = own["joints"].texts()
    mounted = robot.with_gravity(own["gravity"].vector(3))  # the bank's robot may have been identified as tilted
    if (own["fingerprint"].value, joints) != (mounted.fingerprint, list(robot.joint_names)):
        raise LocalError(
            f"{path}: this bank belongs to robot '{own['name'].text()}' ({', '.join(joints)}); '{robot.name}' "
            f"({', '.join(robot.joint_names)}) has other joints or other kinematics."
        )
    models: list[LocalModel] = []
    for entry in content["regions"].items("region", _MOST):
        item = entry.table(("name",), others=True)["name"]
        name = item.text()
        if Path(name).name != name:
            item.fail(f"'{name}' is not a folder name; region names must not contain path separators.")
        models.append(_read_local(path / name, name, mounted, models[-1].base if models else None))
    return Bank(mounted, tuple(models), content["blend"].number(low=0.0))


def _local_files(local: LocalModel) -> dict[str, Content]:
    """Files of one region: model and motion."""
    model = {
        "region": local.region.to_dict(),
        "theta": local.model.theta.tolist(),
        "settings": local.settings.to_json(),
    }
    model |= {key: getattr(local, name).tolist() for key, name in (_ARRAYS | _OPTIONAL).items()}
    model |= {key: getattr(local, name) for key, name in _NUMBERS.items()}
    out: dict[str, Content] = {
        "model.json": json_text(plain(model)),
        "model.steelyard.json": lambda path: model_to_sidecar(local.model, path),
    }
    if local.possible:
        out["model.urdf"] = lambda path: model_to_urdf(local.model, path)
    if local.motion is not None:
        out["trajectory.json"] = json_text(plain(motion_to_dict(local.motion)))
    return out


def _read_local(folder: Path, name: str, robot: Robot, known: BaseParameters | None = None) -> LocalModel:
    """Read the files of `_local_files`; `known` base parameters are reused if the terms are the same."""
    data = _read(folder / "model.json").table(
        ("region", "theta", "settings", *_ARRAYS, *_NUMBERS), tuple(_OPTIONAL), others=True
    )
    terms = _terms(folder / "model.steelyard.json", robot)
    base = known if known is not None and known.terms.terms == terms.terms else base_parameters(robot, terms)
    played = folder / "trajectory.json"
    shapes = {"beta": (base.rank,), "covariance": (base.rank, base.rank), "spread": (None,)}
    numbers: dict[str, Any] = {n: data[key].array(*shapes[key], missing=np.nan) for key, n in _ARRAYS.items()}
    numbers |= {n: data[key].array(None, base.rank) for key, n in _OPTIONAL.items() if key in data}
    numbers |= {name: data[key].number() for key, name in _NUMBERS.items()}
    return LocalModel(
        region=region_from_dict(name, data["region"]),
        model=Model(robot, terms, data["theta"].array(robot.inertial_count + len(terms))),
        base=base,
        settings=IdentificationSettings.from_field(data["settings"]),
        motion=motion_from_dict(_read(played), robot) if played.exists() else None,
        **numbers,
    )


def _terms(path: Path, robot: Robot) -> Terms:
    terms = []
    for term in read_sidecar(path).terms:
        if term.kind not in TERMS:
            raise LocalError(f"{path}: term '{term.kind}' is a custom term; the file does not contain its formula.")
        terms.append(make_term(term.kind, **{**term.options, "on": term.on, "where": term.where}))
    return Terms(robot, tuple(terms))


def _read(path: Path) -> Field:
    return read_json(path, LocalError, "give the folder of a bank of local models", exact=True)


def whole_model(bank: Bank, run: str | os.PathLike[str]) -> LocalModel:
    """Read a model for the whole workspace, to compare it with the local models.

    Args:
        bank: Bank with the local models.
        run: Run folder of `steelyard identify`.
    """
    model = load_model(run)
    if model.robot.joint_names != bank.robot.joint_names:
        raise LocalError(
            f"{run}: the model belongs to another robot, with joints {', '.join(model.robot.joint_names)}."
        )
    return replace(bank.models[0], model=Model(model.robot, model.terms, model.theta))
