"""The program `steelyard`: it lists its commands by name and imports only the one that is called."""

from __future__ import annotations

import errno
import inspect
import math
from collections.abc import Callable, Mapping
from copy import copy
from importlib import import_module
from importlib.metadata import version as installed_version
from string import Formatter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as build_command

from steelyard.errors import SteelyardError, shortened, warnings_as_notes
from steelyard.ground.interrupt import on_interrupt

# Lists that a help text may name in braces: the module, and its names or a function that returns text. They are read
# only when help is shown.
LISTS = {
    "estimators": ("estimation.registry", "estimator_help"),
    "schemes": ("regression.schemes", "SCHEMES"),
    "default_terms": ("parameters.terms", "DEFAULT_TERMS"),
    "families": ("excitation.excite_options", "FAMILIES"),
    "criteria": ("excitation.criteria", "CRITERIA"),
    "prediction_formats": ("prediction.prediction_files", "PREDICTION_FORMATS"),
    "payload_targets": ("payload.controller_files", "PAYLOAD_TARGETS"),
    "motion_targets": ("excitation.controller_formats.target", "MOTION_TARGETS"),
    "optimisers": ("excitation.excite_options", "OPTIMISERS"),
    "papers": ("papers", "PAPERS"),
    "measurements": ("calibration.measurement", "MEASUREMENTS"),
    "effects": ("calibration.joint_effects", "EFFECTS"),
    "match_numbers": ("matching.match", "FIT_NAMES"),
    "presets": ("signals.presets", "PRESETS"),
    "drives": ("actuators.drive_model", "DRIVE_KINDS"),
    "frictions": ("actuators.drive_model", "DRIVE_FRICTION"),
    "drive_effects": ("actuators.drive_model", "DRIVE_EFFECTS"),
    "formats": ("export.formats", "FORMATS"),
    "model_formats": ("export.formats", "MODEL_FORMATS"),
    "groups": ("compare.methods", "GROUPS"),
    "noises": ("compare.protocol", "NOISES"),
    "controllers": ("compare.protocol", "CONTROLLERS"),
    "sources": ("watch.live_source", "LIVE_SOURCES"),
    "watch_outputs": ("watch.output", "WATCH_OUTPUTS"),
    "watch_monitors": ("watch.monitor_base", "MONITORS"),
}


def expand_lists(text: str) -> str:
    """Expand lists in a help `text`: "{schemes:or}" becomes "dynamic, … or filtered-power"."""
    out = []
    for plain, name, separator, _ in Formatter().parse(text):
        out.append(plain)
        if name:
            module, attribute = LISTS[name]
            members = getattr(import_module(f"steelyard.{module}"), attribute)
            out.append(members() if callable(members) else _join(list(members), separator or ""))
    return "".join(out)


def _join(names: list[str], separator: str) -> str:
    if separator == "or" and len(names) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return (separator or ", ").join(names)


# All commands with their help, by stage of work, so that `steelyard --help` imports no command. Each command is defined
# in the module of its first word; tests check that its docstring equals the help here.
STAGES = {
    "Start": {
        "studio": "Open the web interface: robot, data, check, motion, identification, use. It is reachable only from "
        "this machine.",
    },
    "Prepare": {
        "init": "Write a project file (steelyard.toml) with defaults for all commands in this folder and below.",
        "inspect": "Show a robot's joints, links and drives, and its identifiable parameters.",
        "robots": "List the robots that come with the package.",
        "excite": "Design the most informative motion for a robot within its limits, which hold between samples too.",
        "rehearse": "Test a designed motion in simulation: does identification recover the known parameters? Exits "
        "with 0 if it does, else with 1.",
        "simulate": "Simulate a model that follows a motion, receives torques or falls freely, and write the log.",
    },
    "Check data": {
        "map": "Guess the meaning of a log's columns with reasons, ask where unsure, and write the mapping. Exits with "
        "0 if nothing was assumed, 1 if something was assumed or is missing.",
        "check": "Check logs before identification: data quality, identifiable parameters, advice. Exits with 0 if all "
        "logs are usable, 1 if one must be fixed first, 2 if one is unusable.",
    },
    "Identify": {
        "identify": "Identify a robot's parameters from logs, validate them, and write a run folder.",
        "sequential": "Identify in steps: each movement gives a few parameters and uses those of the steps before.",
        "friction": "Measure friction over velocity, per joint or per drive, and fit a friction law.",
        "gravity": "Identify the gravity torque of a robot from poses at rest, and write its compensation in C.",
        "elastic": "Identify elastic joints: stiffness and clock skew from two encoders, or resonances from one.",
        "payload": "Identify the payload of a robot: mass, centre of gravity and inertia, with error bars.",
        "calibrate": "Calibrate a robot's geometry from held poses that a tracker, a camera or a probe measured.",
        "match": "Match a simulated robot to its commands: links, rotors, friction, zeros and delay, without a torque "
        "sensor.",
        "actuator": "Identify a drive (servo, quasi-direct drive) from its own goals and positions, without a torque "
        "sensor.",
        "fleet": "Identify many robots from many logs, on all cores or several machines; a later run reads only new "
        "logs.",
        "local": "Identify models for parts of the workspace: motions, identification, validation, recalibration.",
        "local design": "Design a motion inside every region, to be played on the robot.",
        "local identify": "Identify one model per region, from logs or on a simulated robot.",
        "local validate": "Validate a bank over many motions: errors, bands, transfer between regions, comparison with "
        "a global model.",
        "local recalibrate": "Identify a region's model again from a new log, and report its drift.",
    },
    "Validate and use": {
        "validate": "Validate the motion of a model: four tests against a plant, or two against logs; a sweep ranks "
        "the parameters by their influence.",
        "predict": "Predict the torques of logged motions with a model or a bank of local models, with 95 % bands.",
        "export": "Write a model as files for other programs: URDF, MJCF, SDF, xacro, USD, C, FMU, a table.",
        "compare": "Compare several schemes or estimators on the same data.",
        "compare schemes": "Identify with every scheme from one log: parameters, intervals, hold-out errors, time.",
        "compare estimators": "Identify the same robot with all estimators: errors of parameters, torque and position, "
        "time, recommendations.",
    },
    "Monitor": {
        "watch": "Monitor a working robot with its model: contacts, payload, wear, validity of the model.",
    },
    "Learn": {
        "demo": "Run all steps on a simulated 6-axis arm: motion, log, check, identification, report.",
        "reproduce": "Reproduce the tables and figures of a paper next to the printed ones, and test its claims.",
    },
}
COMMANDS = {name: help for stage in STAGES.values() for name, help in stage.items()}
_builders: dict[str, Callable[[], TyperCommand]] = {}


def command(name: str, epilog: str, uses_project: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a function a command; its docstring is the help text.

    Args:
        name: Words of the command, such as "local design".
        epilog: Example below the help text.
        uses_project: Take missing options from the project file.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def build() -> TyperCommand:
            single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            single.command(name.split()[-1], cls=_Command, epilog=epilog)(function)
            built = build_command(single)
            assert isinstance(built, _Command)
            built.full_name, built.project_keys = name, _project_marks(function) if uses_project else {}
            return built

        _builders[name] = build
        return function

    return register


def _project_marks(function: Callable[..., None]) -> dict[str, Any]:
    """The options of a command that a project file may set, by name."""
    from steelyard.cli.project_options import FromProject

    parameters = inspect.signature(function, eval_str=True).parameters.values()
    marks = {
        p.name: [m for m in getattr(p.annotation, "__metadata__", ()) if isinstance(m, FromProject)] for p in parameters
    }
    return {name: each[0] for name, each in marks.items() if each}


# Allowed range of an option's number, by its placeholder in the help; other numbers are finite and below 1e15.
_RANGES = {
    "HZ": (1e-3, 1e7), "RAD/S": (1e-3, 1e7), "S": (-1e7, 1e7), "SHARE": (0.0, 1.0), "PERCENT": (0.0, 1e4),
    "M": (0.0, 1e6), "Z": (-1e6, 1e6), "POS": (-1e6, 1e6), "SPEED": (0.0, 1e6), "TOL": (0.0, 0.1),
    "N": (0, 10**15), "K": (0, 10**6),
}  # fmt: skip


# Name of the option that shows the help of all options.
ALL_OPTIONS = "help_all"


class _Command(TyperCommand):
    """A command that checks numbers, takes missing options from the project file, and expands lists in help texts."""

    full_name = ""
    project_keys: Mapping[str, Any] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if "--floating" in args and not any("--floating" in option.opts for option in self.params):
            if self.full_name == "excite":
                raise SteelyardError(
                    "'excite' has no option --floating: name the feet on which the base stands (--feet A,B,…), or "
                    "leave it out, and the base counts as held or hung."
                )
            raise SteelyardError(
                f"'{self.full_name}' supports robots with a fixed base only; leave out --floating, and the base counts "
                "as held. `steelyard inspect`, `check`, `identify` and `payload` support floating bases."
            )
        typed, left, _ = self.make_parser(ctx).parse_args(args=list(args))
        if typed.get(ALL_OPTIONS):
            ctx.meta[ALL_OPTIONS] = True
            typer.echo(ctx.get_help(), color=ctx.color)
            raise typer.Exit()
        if left or typed.get("help"):
            return super().parse_args(ctx, args)
        from steelyard.cli.project_options import chosen_project, with_project

        file = ctx.find_root().params.get("project") or ""
        project = chosen_project(file) if self.project_keys else None
        ctx.meta["steelyard.words"] = line = with_project(self, typed, project, self.full_name)
        try:
            return super().parse_args(ctx, list(line.words))
        except typer.Exit:
            raise
        except Exception as error:
            if (missing := getattr(getattr(error, "param", None), "name", "")) not in self.project_keys or not (
                type(error).__name__ == "MissingParameter"
            ):
                raise
            key, name = self.project_keys[missing].keys[0], error.param.metavar  # type: ignore[attr-defined]
            where = f"{line.file} has no '{key}'" if line.file else "steelyard.toml was not found here or above"
            raise SteelyardError(
                f"{name} is missing, and {where}; give {name}, or create a project file: steelyard init ROBOT LOG…"
            ) from None

    def invoke(self, ctx: Any) -> Any:
        from steelyard.ground.field import Field
        from steelyard.ground.repeat import running_command

        line = ctx.meta["steelyard.words"]
        if line.note:
            typer.echo(line.note, err=True)
        # The recorded command contains all options, so that it does not depend on the project file.
        without = ctx.find_root().params.get("project") == "none"
        no_project = ["--project", "none"] if line.keys or without else []

        for option in self.params:
            value = ctx.params.get(option.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high = _RANGES.get(getattr(option, "metavar", None) or "", (-math.inf, math.inf))
                Field(value, option.opts[-1], error=SteelyardError).number(low=low, high=high)
        begin = ["steelyard", *no_project, *self.full_name.split()]
        with running_command([*begin, *line.words], [*begin, *line.of_result]):
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` and, if the help is shortened, `--help-all`."""
        from steelyard.cli.panels import COMMON_OPTIONS

        params = super().get_params(ctx)
        if self.full_name not in COMMON_OPTIONS:
            return params
        option = copy(next(p for p in params if p.name == "help"))  # a flag of the kind that this Typer has
        option.name, option.opts = ALL_OPTIONS, [f"--{ALL_OPTIONS.replace('_', '-')}"]
        option.help = "Show the help of all options and exit."  # type: ignore[attr-defined]
        return [*params, option]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for option in self.params:
            if getattr(option, "help", None):
                option.help = expand_lists(option.help)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        from steelyard.cli.panels import write_panels

        write_panels(self, ctx, formatter)


class Commands(TyperGroup):
    """A group of commands; errors become one sentence on standard error and exit code 2.

    Args:
        above: First word of the commands, such as "local"; "" for the whole program.
        settings: Arguments of Click's group.
        ctx: Click's context.
        cmd_name: Last word of a command.
        formatter: Click's formatter.
    """

    def __init__(self, *, above: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self._above = above
        depth = len(above.split()) + 1
        self.commands = {
            name.split()[-1]: TyperCommand(name.split()[-1], help=help)
            for name, help in COMMANDS.items()
            if name.startswith(above) and len(name.split()) == depth
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = f"{self._above} {cmd_name}".strip()
        if cmd_name not in self.commands:
            return None
        if any(other.startswith(f"{name} ") for other in COMMANDS):
            return Commands(above=name, name=cmd_name, help=COMMANDS[name], no_args_is_help=True, rich_markup_mode=None)
        import_module(f"steelyard.cli.{name.split()[0]}")
        return _builders[name]()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        if self._above:
            TyperGroup(commands=dict(self.commands)).format_commands(ctx, formatter)
            return
        widest = max(map(len, self.commands))
        for stage, names in STAGES.items():
            # Show the first sentence completely; Click would truncate it.
            firsts = {name: help.partition(". ") for name, help in names.items() if name in self.commands}
            rows = [(name.ljust(widest), first + end.strip()) for name, (first, end, _) in firsts.items()]
            with formatter.section(stage):
                formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SteelyardError as error:
            message = str(error)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            remedy = "; make room on the disk, or write to another folder" if full else ""
            message = f"{error.filename or 'A file'}: {error.strerror or error}{remedy}."
        except MemoryError:
            message = "Not enough memory; give a shorter log or fewer joints."
        typer.echo(f"steelyard: {shortened(' '.join(message.split()))}", err=True)
        raise typer.Exit(2)


app = typer.Typer(
    cls=Commands,
    name="steelyard",
    help="Identify the dynamic model of a robot from its motion.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the program."""
    on_interrupt()
    warnings_as_notes()
    app(prog_name="steelyard")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steelyard {installed_version('steelyard')}")
        raise typer.Exit()


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    project: Annotated[
        str,
        typer.Option(metavar="F", help="Project file; default: steelyard.toml here or above; 'none': no file."),
    ] = "",
) -> None:
    pass
