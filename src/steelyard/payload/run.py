"""What a weighing hands out: one load or several, and the motion to weigh by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.dynamics.model import Model
from steelyard.excitation.plan import Plan
from steelyard.export import model_to_urdf
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Outcome, file_name
from steelyard.payload.controllers import LOAD_TARGETS
from steelyard.payload.load import ENTRIES, Load
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, eq=False)
class LoadRun(Outcome):
    """A weighed load as it is handed out: figures, tool data, and the robot that carries it.

    Args:
        load: what was weighed.
        robot: what carries it.
        source: the robot's URDF or MJCF, of which the written URDF keeps meshes and names.
        targets: controllers that the load is written for: names in `LOAD_TARGETS`.
    """

    load: Load
    robot: Robot
    source: Path | None = None
    targets: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return self.load.to_json()

    def files(self) -> dict[str, Content]:
        """Tables of the load; a URDF with it merged in, where the robot's inertias are known."""
        out: dict[str, Content] = {"load.csv": self.load.to_csv(), "load.yaml": self.load.to_yaml()}
        out |= {LOAD_TARGETS[name].file: LOAD_TARGETS[name].text(self.load) for name in self.targets}
        if self.robot.has_inertia and self.load.possible:
            carrying, name = Model.nominal(self.load.attached(self.robot)), file_name(self.robot.name)
            out[f"{name}_with_load.urdf"] = lambda path: model_to_urdf(carrying, path, self.source)
        return out

    def page(self) -> str:
        from steelyard.payload.page import load_report

        return load_report({"": self})

    def tell(self, out: Console, folder: str = "") -> None:
        """Mass, centre of gravity and inertia with their error bars, in the units that robot makers ask for."""
        from steelyard.ground.numbers import Known, number
        from steelyard.report.terminal import say, table

        load = self.load
        low, high = load.interval()
        cog, cog_error = 1000.0 * load.center_of_gravity, 1000.0 * load.center_of_gravity_error
        names = "xyz"
        rows = [["mass", "kg", str(Known(load.mass, load.mass_error)), number(load.mass_error, 2)]]
        rows += [
            [f"centre of gravity {names[k]}", "mm", str(Known(cog[k], cog_error[k])), number(cog_error[k], 2)]
            for k in range(3)
        ]
        rows += [
            [f"inertia {names[i]}{names[j]}", "kg m²", str(Known(load.inertia[i, j], error)), number(error, 2)]
            for (i, j), error in zip(ENTRIES, load.inertia_error, strict=True)
        ]
        title = f"Load in frame '{load.frame}', inertia about its centre of gravity"
        columns = ["", "unit", "value", "± standard error"]
        out.print(table(title, columns, rows, right=columns[2:]))
        say(
            out,
            f"The mass lies between {Known(low, load.mass_error)} and {Known(high, load.mass_error)} kg with 95 % "
            "confidence.",
        )
        for note in load.notes:
            say(out, f" • {note}")
        if folder:
            controllers = "".join(f", {LOAD_TARGETS[name].file}" for name in self.targets)
            say(out, f"\nWritten to {folder}: result.json, load.csv, load.yaml{controllers} and the robot with it.")


@dataclass(frozen=True, eq=False)
class LoadRuns(Outcome):
    """Several loads that were weighed together, by name; the folder of each is what `LoadRun` writes.

    Args:
        runs: each load with the robot that carries it.
    """

    runs: Mapping[str, LoadRun]

    def to_json(self) -> dict[str, Any]:
        return {"loads": {name: run.to_json() for name, run in self.runs.items()}}

    def files(self) -> dict[str, Content]:
        return {f"{file_name(n)}/{path}": made for n, run in self.runs.items() for path, made in run.files().items()}

    def page(self) -> str:
        from steelyard.payload.page import load_report

        return load_report(self.runs)

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        for name, run in self.runs.items():
            say(out, name)
            run.tell(out)
        if folder:
            say(out, f"\nWritten to {folder}: result.json and a folder for every load.")


@dataclass(frozen=True, eq=False)
class LoadMotion(Outcome):
    """A motion for a force–torque sensor, and what it will show of a load.

    Args:
        robot: what plays it.
        plan: the motion.
        noise: of the sensor's six axes, N and N m.
    """

    robot: Robot
    plan: Plan
    noise: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        errors = self.plan.standard_errors(list(self.noise))
        return {
            "robot": self.robot.name,
            "duration": self.plan.trajectory.duration,
            "condition_number": self.plan.condition_number,
            "wrench_noise": list(self.noise),
            "load": [
                {"name": n, "unit": u, "expected_standard_error": float(e)}
                for n, u, e in zip(self.plan.columns, self.plan.units, errors, strict=True)
            ],
        }

    def files(self) -> dict[str, Content]:
        return {"trajectory.json": self.plan.to_json(), "motion.csv": csv_text(self.plan.csv_rows())}

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.ground.numbers import number
        from steelyard.report.terminal import say, table

        rows = [[x["name"], x["unit"], number(x["expected_standard_error"], 2)] for x in self.to_json()["load"]]
        columns = ["", "unit", "expected standard error"]
        out.print(table("One pass, with the sensor's noise", columns, rows, right=columns[2:]))
        say(out, f"{number(self.plan.trajectory.duration)} s; collisions were not looked at.")
        if folder:
            say(out, f"\nWritten to {folder}: motion.csv, trajectory.json, result.json.")
