"""A bank as a folder: plain JSON, one folder per region, nothing that could run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError
from steelyard.export import load_model, model_to_sidecar, model_to_urdf, read_sidecar
from steelyard.ground.files import plain, read_json
from steelyard.ground.outcome import Content, Outcome, json_text
from steelyard.identification.identification import IdentificationSettings
from steelyard.local.bank import Bank, LocalModel
from steelyard.local.motions import motion_from_dict, motion_to_dict
from steelyard.local.region import region_from_dict
from steelyard.parameters.term import TERMS, make_term
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot
from steelyard.signals.prepare import Preparation

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.local.recalibrate import ModelDrift

_SCHEMA = "steelyard.bank/1"


@dataclass(frozen=True, eq=False)
class BankRun(Outcome):
    """A bank as it is handed out: result.json, a folder per region, report.html.

    Models that are physically possible are there as URDF, too. After a recalibration `drift` says what has changed: it
    is what is told then, and stands in result.json beside the bank.
    """

    bank: Bank
    drift: ModelDrift | None = None

    def to_json(self) -> dict[str, Any]:
        return bank_json(self.bank) if self.drift is None else self.drift.to_json()

    def files(self) -> dict[str, Content]:
        more = {} if self.drift is None else {"drift": self.drift.to_json()}
        out: dict[str, Content] = {"result.json": json_text(plain({**bank_json(self.bank), **more}))}
        for local in self.bank.models:
            out |= {f"{local.name}/{name}": content for name, content in _local_files(local).items()}
        return out

    def page(self) -> str:
        from steelyard.local.page import bank_report

        return bank_report(self.bank, drift=self.drift)

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.local.page import print_bank, print_drift

        if self.drift is None:
            print_bank(self.bank, out, folder)
        else:
            print_drift(self.drift, out, folder)


def save_bank(bank: Bank, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write `bank` as a `folder` that appears whole or not at all; `overwrite` replaces an existing one."""
    return BankRun(bank).save(folder, overwrite=overwrite, report=False)


def bank_json(bank: Bank) -> dict[str, Any]:
    """What a `bank` is, for machines; the numbers of each model stand in its region's folder."""
    return {
        "schema": _SCHEMA,
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
                "residual_standard_deviation": plain(local.residual_std.tolist()),
                "base_parameters": [
                    {"name": n, "formula": f, "unit": u, "value": float(v), "free_value": float(b), "standard_error": e}
                    for n, f, u, v, b, e in zip(
                        local.base.names,
                        local.base.formulas,
                        local.base.units,
                        local.values,
                        local.beta,
                        local.standard_errors.tolist(),
                        strict=True,
                    )
                ],
            }
            for local in bank.models
        ],
    }


def load_bank(folder: str | os.PathLike[str], robot: Robot) -> Bank:
    """The bank that `save_bank` wrote into `folder`, for the `robot` it was made with."""
    place = Path(folder)
    data = _read(place / "result.json")
    if data.get("schema") != _SCHEMA:
        raise LocalError(f"{place}: holds no bank of local models (schema is {data.get('schema')!r}, not {_SCHEMA!r}).")
    own = data["robot"]
    mounted = robot.with_gravity(own["gravity"])  # a log may have told how the robot stands
    if (own["fingerprint"], own["joints"]) != (mounted.fingerprint, list(robot.joint_names)):
        raise LocalError(
            f"{place}: this bank is that of robot '{own['name']}' ({', '.join(own['joints'])}); '{robot.name}' "
            f"({', '.join(robot.joint_names)}) has other joints or other kinematics."
        )
    try:
        models = []
        base: BaseParameters | None = None
        for entry in data["regions"]:
            local = _read_local(place / entry["name"], entry["name"], mounted, base)
            models.append(local)
            base = local.base
        return Bank(mounted, tuple(models), float(data["blend"]))
    except (KeyError, TypeError, ValueError) as error:
        raise LocalError(f"{place}: the bank cannot be read: {error!r} is missing or of the wrong kind.") from None


def _local_files(local: LocalModel) -> dict[str, Content]:
    """One region's model and motion."""
    model = {
        "region": local.region.to_dict(),
        "theta": local.model.theta.tolist(),
        "beta": local.beta.tolist(),
        "covariance": local.covariance.tolist(),
        "spread": local.residual_std.tolist(),
        "settings": local.settings.to_json(),
        "cutoff": local.cutoff_hz,
        "seconds": local.seconds,
        "inside": local.inside,
    }
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
    """What `_local_files` holds; `known` are base parameters of the same robot, used if its terms are the same."""
    data = _read(folder / "model.json")
    terms = _terms(folder / "model.steelyard.json", robot)
    base = known if known is not None and known.terms.terms == terms.terms else base_parameters(robot, terms)
    settings = dict(data["settings"])
    settings["preparation"] = Preparation(**settings["preparation"])
    settings["known_friction"] = tuple(settings["known_friction"])
    played = folder / "trajectory.json"
    return LocalModel(
        region=region_from_dict(name, data["region"]),
        model=Model(robot, terms, np.array(data["theta"])),
        base=base,
        beta=np.array(data["beta"]),
        covariance=np.array(data["covariance"]),
        residual_std=np.array([np.nan if x is None else x for x in data["spread"]]),
        settings=IdentificationSettings(**settings),
        cutoff_hz=float(data["cutoff"]),
        seconds=float(data["seconds"]),
        inside=float(data["inside"]),
        motion=motion_from_dict(_read(played), robot) if played.exists() else None,
    )


def _terms(path: Path, robot: Robot) -> Terms:
    made = []
    for term in read_sidecar(path).terms:
        if term.kind not in TERMS:
            raise LocalError(f"{path}: term '{term.kind}' is one of your own, whose formula no file holds.")
        made.append(make_term(term.kind, on=term.on, where=term.where, **term.options))
    return Terms(robot, tuple(made))


def _read(path: Path) -> dict[str, Any]:
    data = read_json(path, LocalError, "give the folder of a bank of local models")
    if not isinstance(data, dict):
        raise LocalError(f"{path}: is no JSON object; give the folder of a bank of local models.")
    return data


def whole_model(bank: Bank, run: str | os.PathLike[str]) -> LocalModel:
    """A model for the whole workspace from a `run` folder of `steelyard identify`, to hold against those of `bank`."""
    model = load_model(run)
    if model.robot.joint_names != bank.robot.joint_names:
        raise LocalError(
            f"{run}: the model is that of another robot, with joints {', '.join(model.robot.joint_names)}."
        )
    return replace(bank.models[0], model=Model(model.robot, model.terms, model.theta))
