"""Panels of options in the help of commands. An option is in the same panel for every command."""

from __future__ import annotations

from typing import Any

# Panels in the order of display; other options are in "Options".
PANELS = {
    "Input": (
        "mapping", "log", "validate", "given", "with_load", "without", "arm", "known", "controller", "controllers",
        "against", "motion", "torque", "description", "speed", "torque_variable", "hold", "gap", "stale",
        "runs", "units", "columns",
    ),
    "Options": (),
    "Load": ("mass", "length", "arm_mass", "inertia", "gravity_torque", "rest_angle"),
    "Drive": ("kind", "effects", "kp", "kd", "volts", "duty_gain"),
    "Robot": ("joints", "lock", "gravity", "snap", "torque_used", "packages", "frame", "srdf"),
    "Model": (
        "term_names", "terms", "friction", "physical", "prior", "significant", "plain", "tune", "truth", "spread",
    ),
    "Fit": (
        "scheme", "estimator", "cutoff", "velocity", "mask", "delay", "torque_between",
        "period", "order", "cutoffs", "limit", "method",
    ),
    "Monitor": ("parts", "false_alarms", "calibration", "calibrate", "state", "snapshot", "adapt"),
    "Validation": ("holdout", "holdout_blocks", "score_cutoff", "horizon", "sweep"),
    "Limits": (
        "q", "dq", "ddq", "jerk", "tau", "power", "torque_margin", "box", "floor", "collision", "clearance",
        "srdf", "bandwidth",
    ),
    "Motion": (
        "duration", "rate", "dwell", "harmonics", "family", "poses", "motions", "moving", "posture", "passes", "rates",
        "trajectories", "points", "start", "control_rate", "noise",
    ),
    "Objective": ("criterion", "scaling", "weights", "window", "equations", "parameters", "wanted"),
    "Search": (
        "how", "optimiser", "via_points", "generations", "population", "patience", "seed", "seeds", "starts",
        "search_time", "gpu", "checkpoint", "workers", "resume",
    ),
    "Output": (
        "simulators", "into", "physics_step", "to", "targets", "every", "output", "overwrite", "as_json", "fix",
        "help", "help_all",
    ),
}  # fmt: skip
# Commands with many options: the options that `--help` shows; `--help-all` shows the others too.
COMMON_OPTIONS = {
    "excite": (
        "joints", "q", "dq", "ddq", "tau", "box", "floor", "duration", "poses", "search_time", "targets", "output",
    ),
    "identify": (
        "validate", "mapping", "joints", "terms", "plain", "physical", "estimator", "cutoff", "holdout", "output",
    ),
}  # fmt: skip
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


def panel_of(option: str) -> str:
    """Return the panel of an `option`, given its name in the program."""
    return _PANEL_OF.get(option, "Options")


def write_panels(command: Any, ctx: Any, formatter: Any) -> None:
    """Write the arguments of a command and its options, panel by panel.

    Args:
        command: Command of the program.
        ctx: Click's context.
        formatter: Click's formatter.
    """
    every = [(p, record) for p in command.get_params(ctx) if (record := p.get_help_record(ctx)) is not None]
    common = None if "help_all" in ctx.meta else COMMON_OPTIONS.get(command.full_name)
    always = ("overwrite", "as_json", "help", "help_all") if common else ()
    shown = [
        (p, record)
        for p, record in every
        if common is None or p.param_type_name == "argument" or p.name in (*common, *always)
    ]
    places: dict[str, list[Any]] = {"Arguments": [], **{panel: [] for panel in PANELS}}
    for param, (name, text) in shown:
        in_project = param.name in command.project_keys
        record = name, text.replace("[required]", "[required, or in steelyard.toml]") if in_project else text
        places["Arguments" if param.param_type_name == "argument" else panel_of(param.name)].append(record)
    for panel, records in places.items():
        if records:
            with formatter.section(panel):
                formatter.write_dl(records)
    if hidden := len(every) - len(shown):
        formatter.write_paragraph()
        formatter.write_text(f"{hidden} more options: steelyard {command.full_name} --help-all")
