"""Presents a simulated motion on the terminal and as an HTML page."""

from __future__ import annotations

from rich.console import Console

from steelyard.report.elements import TableCell, TableColumn, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.lines import Line, Panel, line_panels
from steelyard.report.terminal import number, say, table
from steelyard.simulation.simulated_motion import SimulatedMotion

# Keys and heads of the joint table; tracking only if there is a reference.
_HEADS = {
    "lowest": "lowest", "highest": "highest", "velocity": "fastest, per s", "torque": "largest torque",
    "torque_rms": "torque, RMS", "tracking_rms": "tracking error, RMS",
}  # fmt: skip


def print_simulation(motion: SimulatedMotion, out: Console, folder: str = "") -> None:
    """Print a simulated motion.

    Args:
        motion: The simulation.
        out: Console to print to.
        folder: Run folder; "" if none was written.
    """
    name = motion.model.robot.name
    for k, run in enumerate(motion.runs):
        joints = motion.joints(k)
        heads = [head for key, head in _HEADS.items() if key in joints[0]]
        rows = [
            [j["joint"], f"{j['unit']}, {j['torque_unit']}", *(number(j[key]) for key in _HEADS if key in j)]
            for j in joints
        ]
        title = f"{name} {motion.driven}: {run.t[-1] - run.t[0]:g} s"
        out.print(table(title, ["joint", "units", *heads], rows, right=heads))
    if folder:
        say(out, f"Log: {folder}/log.csv; report: {folder}/report.html.")


def simulation_report(motion: SimulatedMotion) -> str:
    """Build the HTML page of a simulation, `motion`."""
    sections = []
    for k, run in enumerate(motion.runs):
        joints = motion.joints(k)
        keys = [key for key in _HEADS if key in joints[0]]
        rows: list[list[TableCell]] = [
            [j["joint"], f"{j['unit']}, {j['torque_unit']}", *(j[x] for x in keys)] for j in joints
        ]
        heads: list[TableColumn | str] = ["joint", "units", *(TableColumn(_HEADS[x]) for x in keys)]
        end = "" if len(motion.runs) == 1 else f" of motion {k + 1}"
        body = join(
            paragraph(f"{len(run.t)} samples over {run.t[-1] - run.t[0]:g} s. The log holds the sensor signals."),
            table_html(heads, rows, "Ranges of the joints"),
            figure_html(_figure(motion, k, "q"), "Positions"),
            figure_html(_figure(motion, k, "dq"), "Velocities"),
            figure_html(_figure(motion, k, "tau"), "Torques", "Constant between control instants."),
        )
        sections.append(Section(f"Motion{end}", body))
    noise = "true signals" if motion.noise is None else "positions of a 19-bit encoder, torques with noise"
    return render_report(f"{motion.model.robot.name} {motion.driven}", sections, subtitle=f"The log contains {noise}.")


def _figure(motion: SimulatedMotion, k: int, signal: str) -> Figure:
    """One panel per joint: true signal, logged signal if it differs, and reference."""
    run, log = motion.runs[k], motion.logs[k]
    panels = []
    for j, joint in enumerate(motion.model.robot.joints):
        position = "rad" if joint.kind == "revolute" else "m"
        unit = {"q": position, "dq": f"{position}/s", "tau": joint.effort_unit}[signal]
        lines = [Line.of("simulated", run.t, getattr(run, signal)[:, j])]
        logged = getattr(log, signal)
        if motion.noise is not None and logged is not None:
            lines.insert(0, Line.of("logged", log.t, logged[:, j]))
        if signal == "q" and motion.wanted:
            lines.append(Line.of("wanted", run.t, motion.wanted[k][:, j], dashed=True))
        panels.append(Panel(joint.name, tuple(lines), y=f"[{unit}]"))
    return line_panels(panels)
