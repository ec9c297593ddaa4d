"""The program `steelyard`: it knows its commands by name, and imports one when it is called."""

from __future__ import annotations

import errno
import inspect
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version as installed_version
from string import Formatter
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as made_command

from steelyard.errors import SteelyardError, shortened, warnings_as_notes
from steelyard.ground.interrupt import on_interrupt

# What options can be, listed in their help: asked of those who know it, and only when help is shown.


# What a help text may name in braces: the module, and in it the names, or a function that says them.
LISTS = {
    "estimators": ("estimation.registry", "estimator_help"),
    "schemes": ("regression.schemes", "SCHEMES"),
    "default_terms": ("parameters.terms", "DEFAULT_TERMS"),
    "families": ("excitation.excite", "FAMILIES"),
    "criteria": ("excitation.criteria", "CRITERIA"),
    "prediction_formats": ("use.prediction_files", "PREDICTION_FORMATS"),
    "payload_targets": ("payload.controllers", "PAYLOAD_TARGETS"),
    "motion_targets": ("excitation.controllers.target", "MOTION_TARGETS"),
    "optimisers": ("excitation.excite", "OPTIMISERS"),
    "papers": ("papers", "PAPERS"),
    "presets": ("signals.presets", "PRESETS"),
    "formats": ("use.exported", "FORMATS"),
    "model_formats": ("export.formats", "MODEL_FORMATS"),
    "groups": ("compare.methods", "GROUPS"),
    "noises": ("compare.protocol", "NOISES"),
    "controllers": ("compare.protocol", "CONTROLLERS"),
    "sources": ("watch.source", "LIVE_SOURCES"),
    "watch_outputs": ("watch.output", "WATCH_OUTPUTS"),
    "watch_parts": ("watch.monitor", "MONITORS"),
}


def filled(text: str) -> str:
    """The help `text` with "{schemes:or}" spelled out as "dynamic, … or filtered-power", or "{papers:,}" as a list."""
    out = []
    for plain, name, joint, _ in Formatter().parse(text):
        out.append(plain)
        if name:
            module, listed = LISTS[name]
            found = getattr(import_module(f"steelyard.{module}"), listed)
            out.append(found() if callable(found) else _joined(list(found), joint or ""))
    return "".join(out)


def _joined(names: list[str], joint: str) -> str:
    if joint == "or" and len(names) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return (joint or ", ").join(names)


# Every command with its help, by the stage of work it belongs to: `steelyard --help` shows them without importing one.
# Tests hold the table to the modules: a command stands in the module of its first word, and its docstring is its help.
STAGES = {
    "Begin": {
        "studio": "Open the whole way in a browser: robot, data, check, motion, identification, use; on this machine "
        "alone.",
    },
    "Prepare": {
        "init": "Write a project file (steelyard.toml): what every command below its folder is about.",
        "inspect": "Show a robot's joints, links and drives, and which parameters its motion can show.",
        "robots": "List the robots that come with the package.",
        "excite": "Design the motion that shows a robot's parameters best, within limits that hold at every instant.",
        "rehearse": "Play a designed motion on a simulated robot: are its planted parameters found? (Exit code 0, or "
        "1.)",
        "simulate": "Let a model follow a motion, play torques to it, or let it fall, and write the log of that.",
    },
    "Look": {
        "map": "Guess what the columns of a log mean, say why, ask where it is unsure, and write the mapping. Exits "
        "with 0 if all is certain or was answered, 1 if something was assumed or is missing.",
        "check": "Look at logs before identifying from them: are they sound, what can they show, what to do. Exits "
        "with 0 if all can be identified from, 1 if one must be mended first, 2 if one is of no use.",
    },
    "Identify": {
        "identify": "Find a robot's parameters from logs, judge them, and write a run folder.",
        "sequential": "Identify movement by movement: each finds a few parameters, and rests on what the ones before "
        "it found.",
        "friction": "Measure friction over velocity, joint by joint or drive by drive, and find the law behind it.",
        "payload": "Weigh what a robot carries: mass, centre of gravity and inertia, with error bars.",
        "fleet": "Identify a fleet: many logs of many robots, on all cores or several machines; tomorrow only what is "
        "new.",
        "local": "Models for parts of the workspace: motions, identification, validation, recalibration.",
        "local design": "Design a motion inside every region, to be played on the robot.",
        "local identify": "Identify one model per region, from logs of each or on a simulated robot.",
        "local validate": "Validate a bank over many motions: errors, bands, transfer between regions, a global model "
        "beside it.",
        "local recalibrate": "Make a region's model anew from a new log, and say what has drifted.",
    },
    "Judge and use": {
        "validate": "Judge a model by how it moves: four ways against a plant along a motion, or two on logs; and by "
        "a sweep which parameters matter.",
        "predict": "Predict the torques of logged motions by a model, or by a bank of local ones, with 95 % bands.",
        "export": "Write a model as files that other programs load: URDF, MJCF, SDF, xacro, USD, C, FMU, a table.",
        "compare": "Run several schemes or estimators on the same data.",
        "compare schemes": "Identify by every scheme from one log: parameters, intervals, errors on held-out data, "
        "time.",
        "compare estimators": "Let all estimators find the same robot: errors of parameters, torque and position, "
        "time, and what to use when.",
    },
    "Watch": {
        "watch": "Watch a robot while it works, by its model: what touches it, what it carries, how it ages, whether "
        "the model holds.",
    },
    "Learn": {
        "demo": "The whole story on a simulated 6-axis arm: motion, log, check, identification, report.",
        "reproduce": "Regenerate the tables and figures of a source paper beside the printed ones, and test what it "
        "claims.",
    },
}
COMMANDS = {name: help for stage in STAGES.values() for name, help in stage.items()}
_imported: dict[str, Callable[[], TyperCommand]] = {}


def command(name: str, epilog: str, asks_project: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that makes a function a command; what its docstring says is the help.

    Args:
        name: as it is typed, "local design".
        epilog: an example, below the help.
        asks_project: what is not typed is taken from the project file.
    """

    def enter(function: Callable[..., None]) -> Callable[..., None]:
        def made() -> TyperCommand:
            single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            single.command(name.split()[-1], cls=_Command, epilog=epilog)(function)
            found = made_command(single)
            assert isinstance(found, _Command)
            found.full_name, found.project_keys = name, _marked(function) if asks_project else {}
            return found

        _imported[name] = made
        return function

    return enter


def _marked(function: Callable[..., None]) -> dict[str, Any]:
    """The options of a command that a project file may give, by name, with where they stand there."""
    from steelyard.cli.filling import FromProject

    found = inspect.signature(function, eval_str=True).parameters.values()
    marks = {
        p.name: [m for m in getattr(p.annotation, "__metadata__", ()) if isinstance(m, FromProject)] for p in found
    }
    return {name: each[0] for name, each in marks.items() if each}


# What the numbers of an option may be, by what its help calls them; others are finite and below 1e15.
_RANGES = {
    "HZ": (1e-3, 1e7), "RAD/S": (1e-3, 1e7), "S": (-1e7, 1e7), "SHARE": (0.0, 1.0), "PERCENT": (0.0, 1e4),
    "M": (0.0, 1e6), "Z": (-1e6, 1e6), "POS": (-1e6, 1e6), "SPEED": (0.0, 1e6), "TOL": (0.0, 0.1),
    "N": (0, 10**15), "K": (0, 10**6),
}  # fmt: skip


class _Command(TyperCommand):
    """A command whose numbers are checked, that asks the project file for what was not typed, and whose options list
    what there is of a kind ("{estimators}") when their help is shown, not before. `args`, `ctx` and `formatter` are
    Click's."""

    full_name = ""
    project_keys: Mapping[str, Any] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        typed, left, _ = self.make_parser(ctx).parse_args(args=list(args))
        if left or typed.get("help"):
            return super().parse_args(ctx, args)
        from steelyard.cli.filling import chosen_project, with_project

        asked = ctx.find_root().params.get("project") or ""
        project = chosen_project(asked) if self.project_keys else None
        ctx.meta["steelyard.filled"] = made = with_project(self, typed, project, self.full_name)
        try:
            return super().parse_args(ctx, list(made.words))
        except typer.Exit:
            raise
        except Exception as error:
            if (missing := getattr(getattr(error, "param", None), "name", "")) not in self.project_keys or not (
                type(error).__name__ == "MissingParameter"
            ):
                raise
            key, what = self.project_keys[missing].keys[0], error.param.metavar  # type: ignore[attr-defined]
            where = f"{made.file} has no '{key}'" if made.file else "there is no steelyard.toml here or above"
            raise SteelyardError(
                f"{what} is missing, and {where}; type it, or let `steelyard init ROBOT LOG…` write it down."
            ) from None

    def invoke(self, ctx: Any) -> Any:
        from steelyard.ground.field import Field
        from steelyard.ground.repeat import run_by

        made = ctx.meta["steelyard.filled"]
        if made.line:
            typer.echo(made.line, err=True)
        # What is repeated has all its options, and asks no file that may have changed since.
        asked = ctx.find_root().params.get("project") == "none"
        alone = ["--project", "none"] if made.taken or asked else []

        for option in self.params:
            value = ctx.params.get(option.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high = _RANGES.get(getattr(option, "metavar", None) or "", (-math.inf, math.inf))
                Field(value, option.opts[-1], error=SteelyardError).number(low=low, high=high)
        begin = ["steelyard", *alone, *self.full_name.split()]
        with run_by([*begin, *made.words], [*begin, *made.of_result]):
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for option in self.params:
            if getattr(option, "help", None):
                option.help = filled(option.help)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        from steelyard.cli.panels import write_panels

        write_panels(self, ctx, formatter)


class Commands(TyperGroup):
    """Commands whose errors are one sentence on standard error and exit code 2. Where there is one word `above`, such
    as "local", those that follow it; the other arguments are Click's: `settings`, `ctx`, `formatter` and `cmd_name`."""

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
        return _imported[name]()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        if self._above:
            TyperGroup(commands=dict(self.commands)).format_commands(ctx, formatter)
            return
        widest = max(map(len, self.commands))
        for stage, names in STAGES.items():
            # The first sentence of each, whole: Click would cut it off.
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
            remedy = "; make room, or write elsewhere" if full else ""
            message = f"{error.filename or 'A file'}: {error.strerror or error}{remedy}."
        except MemoryError:
            message = "There is not enough memory for this; give a shorter log or fewer joints."
        typer.echo(f"steelyard: {shortened(' '.join(message.split()))}", err=True)
        raise typer.Exit(2)


app = typer.Typer(
    cls=Commands,
    name="steelyard",
    help="Find the true dynamic model of a robot from its own motion.",
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
        typer.Option(metavar="F", help="The project file; default steelyard.toml, here or above; 'none' for none."),
    ] = "",
) -> None:
    pass
