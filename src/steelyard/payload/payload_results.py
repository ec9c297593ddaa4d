"""Results of the command `payload`: one or several payloads, or a motion."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.payload.controller_files import PAYLOAD_TARGETS
from steelyard.payload.payload import ENTRIES, Payload
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console


@short_repr
@dataclass(frozen=True, eq=False)
class PayloadRun(Outcome):
    """An identified payload with its output files: figures, tool data, and the robot that carries it.

    Args:
        load: Payload.
        robot: Robot that carries it.
        source: The robot's URDF or MJCF; the written URDF keeps its meshes and names.
        targets: Controllers to write the payload for: names in `PAYLOAD_TARGETS`.
    """

    load: Payload
    robot: Robot
    source: Path | None = None
    targets: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return self.load.to_json()

    def files(self) -> dict[str, Content]:
        """Tables of the payload, and a URDF that includes it if the robot's inertias are known."""
        out: dict[str, Content] = {"load.csv": self.load.to_csv(), "load.yaml": self.load.to_yaml()}
        out |= {PAYLOAD_TARGETS[name].file: PAYLOAD_TARGETS[name].text(self.load) for name in self.targets}
        if self.robot.has_inertia and self.load.possible:
            carrying, name = Model.nominal(self.load.attach_to(self.robot)), file_name(self.robot.name)
            out[f"{name}_with_load.urdf"] = lambda path: model_to_urdf(carrying, path, self.source)
        return out

    def page(self) -> str:
        from steelyard.payload.page import payload_report

        return payload_report({"": self})

    def print_to(self, out: Console, folder: str = "") -> None:
        """Print mass, centre of gravity and inertia with their error bars, in the units of robot makers."""
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
        title = f"Payload in frame '{load.frame}', inertia about its centre of gravity"
        columns = ["", "unit", "value", "± standard error"]
        out.print(table(title, columns, rows, right=columns[2:]))
        say(
            out,
            f"The mass is between {Known(low, load.mass_error)} and {Known(high, load.mass_error)} kg with 95 % "
            "confidence.",
        )
        for note in load.notes:
            say(out, f" • {note}")
        if folder:
            controllers = "".join(f", {PAYLOAD_TARGETS[name].file}" for name in self.targets)
            say(out, f"\nWritten to {folder}: result.json, load.csv, load.yaml{controllers} and the robot with it.")


@short_repr
@dataclass(frozen=True, eq=False)
class PayloadRuns(Outcome):
    """Several payloads that were identified together; each gets a folder with the files of a `PayloadRun`.

    Args:
        runs: Payloads by name.
    """

    runs: Mapping[str, PayloadRun]

    def to_json(self) -> dict[str, Any]:
        return {"loads": {name: run.to_json() for name, run in self.runs.items()}}

    def files(self) -> dict[str, Content]:
        return {f"{file_name(n)}/{path}": x for n, run in self.runs.items() for path, x in run.files().items()}

    def page(self) -> str:
        from steelyard.payload.page import payload_report

        return payload_report(self.runs)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        for name, run in self.runs.items():
            say(out, name)
            run.print_to(out)
        if folder:
            say(out, f"\nWritten to {folder}: result.json and a folder for every payload.")


@short_repr
@dataclass(frozen=True, eq=False)
class PayloadMotion(Outcome):
    """A motion for a force–torque sensor, with the expected standard errors of a payload.

    Args:
        robot: Robot.
        plan: Motion.
        noise: Standard deviation of the six axes of the sensor [N, N m].
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

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.ground.numbers import number
        from steelyard.report.terminal import say, table

        rows = [[x["name"], x["unit"], number(x["expected_standard_error"], 2)] for x in self.to_json()["load"]]
        columns = ["", "unit", "expected standard error"]
        out.print(table("One repetition, with the noise of the sensor", columns, rows, right=columns[2:]))
        say(out, f"{number(self.plan.trajectory.duration)} s; collisions were not checked.")
        if folder:
            say(out, f"\nWritten to {folder}: motion.csv, trajectory.json, result.json.")
