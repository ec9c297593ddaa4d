"""Options shared by several commands, and parsers of their text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import typer

from steelyard.cli.completions import one_of, robots, some_of
from steelyard.cli.deliver import AnyOutcome, deliver
from steelyard.cli.project_options import FromProject
from steelyard.errors import SteelyardError
from steelyard.ground.verb_options import OptionText, option_texts
from steelyard.ground.verb_options import numbers as numbers
from steelyard.ground.verb_options import per_joint as per_joint
from steelyard.ground.verb_options import words as words

if TYPE_CHECKING:
    from steelyard.dynamics.model import Model
    from steelyard.excitation.trajectories import Trajectory
    from steelyard.robot.robot import Robot
    from steelyard.signals.log import Log

RobotSource = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT", help="File .urdf, .xml (MJCF), .yaml or .toml, or built-in robot.", autocompletion=robots
    ),
    FromProject("robot"),
]
ModelSource = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="Run of `steelyard identify`, its exported model (.urdf), or robot with inertias."
    ),
    FromProject("model"),
]
DesignedMotion = Annotated[str, typer.Option("--motion", metavar="RUN", help="Run of `steelyard excite`.")]
Joints = Annotated[str, typer.Option(metavar="A,B,…", help="Moving joints; others are locked."), FromProject("joints")]
Lock = Annotated[
    list[str] | None,
    typer.Option(metavar="JOINT=VALUE", help="Lock a joint at a value in rad or m. May be repeated."),
    FromProject("lock"),
]
Gravity = Annotated[str, typer.Option(metavar="X,Y,Z", help="Gravity in the base frame, m/s²."), FromProject("gravity")]
Snap = Annotated[
    float | None,
    typer.Option(metavar="TOL", help="Make nearly right angles exact; 0: keep them; default: 1e-4."),
    FromProject("snap"),
]
Floating = Annotated[
    bool,
    typer.Option("--floating", help="The root link of a URDF (the base of a DH table) floats: legged robots, drones."),
]
Loops = Annotated[
    str, typer.Option(metavar="F", help="Loop table (TOML): closed loops that the description does not state.")
]
MapFile = Annotated[
    str,
    typer.Option(
        "--map",
        "--preset",
        metavar="F",
        help="Mapping of the logs' columns: file (TOML, JSON), or {presets:or}.",
    ),
    FromProject("mapping"),
]
GoalColumns = Annotated[
    str,
    typer.Option(
        "--goal", metavar="COLS", help="Columns of the goals of servos without torque, as goal{{}} or names: a,b,…."
    ),
]
ControllerFile = Annotated[
    str,
    typer.Option("--controller", metavar="F", help="Controller of the robot (YAML, TOML), for didim, cloe, …."),
    FromProject("controller"),
]
TermNames = Annotated[
    str,
    typer.Option(
        "--terms", metavar="T,…", help="Joint terms; default: {default_terms:,}.", autocompletion=some_of("terms")
    ),
    FromProject("terms"),
]
Physical = Annotated[bool, typer.Option("--physical/--free", help="Physically consistent, or unconstrained fit.")]
PriorOption = Annotated[str, typer.Option(metavar="P", help="Prior: nominal (inertias of the description) or none.")]
Cutoff = Annotated[float | None, typer.Option(metavar="HZ", help="Low-pass cut-off of the fit; default by a rule.")]
Velocity = Annotated[
    str,
    typer.Option(metavar="V", help="Velocity: measured, differentiated (from positions), or auto: the better one."),
]
Delay = Annotated[float, typer.Option(metavar="S", help="Delay of torques behind positions, s.")]
OpenDelay = Annotated[
    float | None,
    typer.Option(metavar="S", help="Delay of torques behind positions, s; default: estimated from the logs."),
]
BetweenSamples = Annotated[
    str,
    typer.Option("--torque-between", metavar="W", help="Torque between samples: held, sampled, averaged, or auto."),
]
Validate = Annotated[
    list[str] | None,
    typer.Option(metavar="LOG", help="Log for validation. May be repeated."),
    FromProject("logs.validate", unless=("holdout", "holdout_blocks")),
]
Horizon = Annotated[float, typer.Option(metavar="S", help="Duration of open-loop replays, s.")]
Output = Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="Folder to write."), FromProject("runs")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_Options = TypeVar("_Options")
_FREE_COMMANDS = (
    "`steelyard inspect`, `check`, `identify` and `payload` do; for others hold or hang the base, and name the driven "
    "joints (--joints A,B,…)."
)


@dataclass(frozen=True)
class RobotOptions:
    """Options for reading a robot's description, the same in every command with a robot."""

    joints: Joints = ""
    lock: Lock = None
    gravity: Gravity = ""
    snap: Snap = None

    def robot(self, source: str, free: bool = False, **more: Any) -> Robot:
        """Load a robot with these options.

        Args:
            source: File or name of a built-in robot.
            free: Whether the command supports free joints.
            more: Additional arguments of `load_robot`.
        """
        from steelyard.robot import refuse_free
        from steelyard.robot.load import load_robot

        robot = load_robot(
            source,
            joints=words(self.joints) or None,
            locked=dict(_locked(text) for text in self.lock or ()) or None,
            gravity=numbers("--gravity", self.gravity, 3) if self.gravity else None,
            snap=self.snap,
            **more,
        )
        return robot if free else refuse_free(robot, "this command does not support it", _FREE_COMMANDS)

    def model(self, source: str) -> Model:
        """Load the model of `source`: a run, a description with sidecar, or a robot, which has its nominal model.

        These options apply only to a robot, because a model contains its own values; else they are refused.
        """
        from steelyard.dynamics.model import Model
        from steelyard.export.sidecar import load_model
        from steelyard.robot.free import refuse_free

        if not is_run(source):
            return Model.nominal(self.robot(source))
        for option, value in vars(self).items():
            if value:
                raise SteelyardError(
                    f"--{option} is for robots, but {source} is a model with its own value; remove it."
                )
        model = load_model(source)
        if model.robot.loops:
            refuse_free(model.robot, "this command does not support it", "lock its joints in the description.")
        return model

    def model_like(self, source: str, model: Model) -> Model:
        """Load a model; if `source` is a robot, use the joints and gravity of another model.

        Args:
            source: As in `model`.
            model: Model with the joints and gravity to use.
        """
        if is_run(source):
            return ROBOT_OPTIONS.model(source)
        gravity = ",".join(repr(float(x)) for x in model.robot.gravity)
        return replace(self, joints=",".join(model.robot.joint_names), gravity=gravity).model(source)


ROBOT_OPTIONS = RobotOptions()


@dataclass(frozen=True)
class OutputOptions:
    """Output options of most commands."""

    output: Output = ""
    overwrite: Overwrite = False
    as_json: AsJson = False

    def deliver(self, make: Callable[[], AnyOutcome]) -> AnyOutcome:
        """Compute a result with `make`, write it and print it."""
        return deliver(make, self.output, self.overwrite, self.as_json)


OUTPUT_OPTIONS = OutputOptions()


@dataclass(frozen=True)
class Typed(Generic[_Options]):
    """Options of a verb as they were typed.

    Args:
        kind: Dataclass of the verb's options.
        values: Typed values by the name of the option.
    """

    kind: type[_Options]
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def options(self, **more: Any) -> _Options:
        """Convert the texts to the verb's options.

        Args:
            more: Values that replace the typed ones, and fields without an option.
        """
        return self.kind(**self.stated(without=more), **more)

    def stated(self, without: Collection[str] = ()) -> dict[str, Any]:
        """Convert the typed texts, except empty ones and those of the fields `without`."""
        typed = {n: (text, self.values[text.name]) for n, text in option_texts(self.kind) if n not in without}
        return {n: text.value(value) for n, (text, value) in typed.items() if value != ""}


def with_options(kind: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Return a decorator for commands whose options are the fields of the dataclass `kind`.

    A field that is itself such a dataclass (`OutputOptions`) adds its own fields.
    """

    def decorate(function: Callable[[_Options], None]) -> Callable[..., None]:
        def call(**values: Any) -> None:
            function(_build(kind, values))

        call.__signature__ = inspect.Signature(list(_parameters(kind)))  # type: ignore[attr-defined]
        call.__doc__ = function.__doc__
        call.__annotations__ = {}
        return call

    return decorate


def _parameters(kind: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) is Typed:
            yield from (_declared_parameter(text) for _, text in option_texts(get_args(hint)[0]))
            continue
        if is_dataclass(hint):
            yield from _parameters(hint)
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _declared_parameter(text: OptionText) -> inspect.Parameter:
    """Make the parameter of a command for a declared option."""
    several = text.complete.startswith(",")
    complete = (some_of if several else one_of)(text.complete.lstrip(",")) if text.complete else None
    info = typer.Option(*text.flags, metavar=text.metavar or None, help=text.help, autocompletion=complete)
    kind = text.kind | None if text.default is None and text.kind is not str else text.kind
    marks = (info, FromProject(*text.keys)) if text.keys else (info,)
    annotation: Any = Annotated[(kind, *marks)]
    return inspect.Parameter(text.name, inspect.Parameter.KEYWORD_ONLY, default=text.default, annotation=annotation)


def _build(kind: Any, values: dict[str, Any]) -> Any:
    if get_origin(kind) is Typed:
        verb = get_args(kind)[0]
        return Typed(verb, {text.name: values[text.name] for _, text in option_texts(verb)})
    hints = get_type_hints(kind)
    nested = {n for n, hint in hints.items() if is_dataclass(hint) or get_origin(hint) is Typed}
    names = [field.name for field in fields(kind)]
    return kind(**{n: _build(hints[n], values) if n in nested else values[n] for n in names})


def _locked(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise SteelyardError(f"--lock is '{text}'; write joint=value, e.g. --lock elbow=0.5.") from None


def is_run(text: str) -> bool:
    """Whether `text` names an exported model: a run folder, or a description with sidecar."""
    from steelyard.export.coerce import is_exported

    return is_exported(text)


def motions_from(run: str, robot: Robot) -> Sequence[Trajectory]:
    """Read the motions of a run of `steelyard excite`.

    Args:
        run: Run folder.
        robot: Robot of the motions.
    """
    from steelyard.excitation.motion_design import read_design

    return read_design(run, robot).trajectories


def logs_from(paths: Sequence[str] | None, robot: Robot, mapping: str) -> list[Log]:
    """Read logs.

    Args:
        paths: Paths of the logs.
        robot: Robot of the logs.
        mapping: Mapping file or preset for their columns; "" for none.
    """
    from steelyard.signals.read import read_log

    return [read_log(path, robot, mapping or None) for path in paths or ()]


def servo_logs(
    paths: Sequence[str] | None, robot: Robot, mapping: str, goal: str, stiffness: Sequence[float] = (1.0,)
) -> list[Log]:
    """Read logs or tables of poses, with the torque of servos that log their goal and position only.

    Args:
        paths: Paths of the logs.
        robot: Robot of the logs.
        mapping: As for `logs_from`.
        goal: Columns of the goal positions; "" for logs with torques.
        stiffness: Stiffness of each joint, or of all [N m/rad or N/m]; 1 leaves the distance to the goal.
    """
    from steelyard.signals.held_poses import logs_or_poses

    logs = [log for path in paths or () for log in logs_or_poses(path, robot, mapping or None)]
    if not goal:
        return logs
    from steelyard.gravity.servo import goal_mapping, servo_log

    of_goals = goal_mapping(mapping or None, goal)
    goals = [log.q for path in paths or () for log in logs_or_poses(path, robot, of_goals)]
    K = stiffness[0] if len(stiffness) == 1 else list(stiffness)
    return [servo_log(log, q, K) for log, q in zip(logs, goals, strict=True)]


def description(robot: str) -> Path | None:
    """Return the path of the option `robot` if its format can be edited (URDF, MJCF), else None."""
    return Path(robot) if robot.lower().endswith((".urdf", ".xml")) else None
