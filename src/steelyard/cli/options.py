"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from steelyard.cli.completions import robots, some_of
from steelyard.cli.deliver import Found, deliver
from steelyard.cli.filling import FromProject
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.dynamics.model import Model
    from steelyard.excitation.trajectories import Trajectory
    from steelyard.robot.robot import Robot
    from steelyard.signals.log import Log

RobotSource = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT", help="A .urdf, .xml (MJCF), .yaml or .toml file, or a built-in robot.", autocompletion=robots
    ),
    FromProject("robot"),
]
ModelSource = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A run of `steelyard identify`, a model it exported (.urdf), or a robot with inertias."
    ),
    FromProject("model"),
]
DesignedMotion = Annotated[str, typer.Option("--motion", metavar="RUN", help="A run of `steelyard excite`.")]
Joints = Annotated[
    str, typer.Option(metavar="A,B,…", help="The joints that move; others are locked."), FromProject("joints")
]
Lock = Annotated[
    list[str] | None,
    typer.Option(metavar="JOINT=VALUE", help="Lock a joint at a value in rad or m. May be repeated."),
    FromProject("lock"),
]
Gravity = Annotated[str, typer.Option(metavar="X,Y,Z", help="Gravity in the base frame, m/s²."), FromProject("gravity")]
Snap = Annotated[
    float | None,
    typer.Option(metavar="TOL", help="Make nearly right angles exact; 0 keeps them (default 1e-4)."),
    FromProject("snap"),
]
MapFile = Annotated[
    str,
    typer.Option(
        "--map",
        "--preset",
        metavar="F",
        help="What the logs' columns mean: a file (TOML, JSON), or one of {presets:or}.",
    ),
    FromProject("mapping"),
]
ControllerFile = Annotated[
    str,
    typer.Option("--controller", metavar="F", help="What controlled the robot (YAML, TOML), for didim, cloe, …."),
    FromProject("controller"),
]
TermNames = Annotated[
    str,
    typer.Option(
        "--terms", metavar="T,…", help="Joint terms; default {default_terms:,}.", autocompletion=some_of("terms")
    ),
    FromProject("terms"),
]
Physical = Annotated[bool, typer.Option("--physical/--free", help="Physically possible, or the free fit.")]
PriorOption = Annotated[str, typer.Option(metavar="P", help="nominal (the description's inertias) or none.")]
Cutoff = Annotated[float | None, typer.Option(metavar="HZ", help="Low-pass of the fit; default by a rule.")]
Velocity = Annotated[
    str,
    typer.Option(metavar="V", help="measured, differentiated (from the positions), or auto: the better one."),
]
Delay = Annotated[float, typer.Option(metavar="S", help="How far the torques lag behind the positions, s.")]
OpenDelay = Annotated[
    float | None,
    typer.Option(metavar="S", help="How far torques lag behind positions, s; default: as logs show it."),
]
BetweenSamples = Annotated[
    str,
    typer.Option(
        "--torque-between", metavar="W", help="How the torque runs between samples: held, sampled, averaged, or auto."
    ),
]
Validate = Annotated[
    list[str] | None,
    typer.Option(metavar="LOG", help="A log to judge by. May be repeated."),
    FromProject("logs.validate", unless=("holdout", "holdout_blocks")),
]
Horizon = Annotated[float, typer.Option(metavar="S", help="Length of the open-loop replays.")]
Output = Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="The folder to write."), FromProject("runs")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing run, whole.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_Options = TypeVar("_Options")


@dataclass(frozen=True)
class Described:
    """How a robot's description is read: the same options, with the same meaning, in every command that has a robot."""

    joints: Joints = ""
    lock: Lock = None
    gravity: Gravity = ""
    snap: Snap = None

    def robot(self, source: str, **more: Any) -> Robot:
        """The robot that `source` names, so read; `more` are arguments of `load_robot`."""
        from steelyard.robot.load import load_robot

        return load_robot(
            source,
            joints=words(self.joints) or None,
            locked=dict(_locked(text) for text in self.lock or ()) or None,
            gravity=numbers("--gravity", self.gravity, 3) if self.gravity else None,
            snap=self.snap,
            **more,
        )

    def model(self, source: str) -> Model:
        """The model that `source` names: a run of `identify`, a description with its sidecar beside it, or a robot with
        inertias, whose nominal model it is. These options are for the last; the others have their own."""
        from steelyard.dynamics.model import Model
        from steelyard.export.sidecar import load_model

        if not is_run(source):
            return Model.nominal(self.robot(source))
        for option, given in vars(self).items():
            if given:
                raise SteelyardError(
                    f"--{option} is for robots, and {source} is a model, which has its own; leave it out."
                )
        return load_model(source)

    def model_like(self, source: str, model: Model) -> Model:
        """The model that `source` names; a robot has the joints and gravity of `model`."""
        if is_run(source):
            return DESCRIBED.model(source)
        gravity = ",".join(repr(float(x)) for x in model.robot.gravity)
        return replace(self, joints=",".join(model.robot.joint_names), gravity=gravity).model(source)


DESCRIBED = Described()


@dataclass(frozen=True)
class End:
    """With what most commands end: where to and how the result is handed out."""

    output: Output = ""
    overwrite: Overwrite = False
    as_json: AsJson = False

    def deliver(self, make: Callable[[], Found]) -> Found:
        """Find something by `make`, write it, print it: see `deliver`."""
        return deliver(make, self.output, self.overwrite, self.as_json)


END = End()


def taking(kind: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """A decorator for commands: the fields of the dataclass `kind` are the options, in its order.

    A field that is itself such a dataclass (`End`) stands for the options in it.
    """

    def enter(function: Callable[[_Options], None]) -> Callable[..., None]:
        def called(**values: Any) -> None:
            function(_filled(kind, values))

        called.__signature__ = inspect.Signature(list(_parameters(kind)))  # type: ignore[attr-defined]
        called.__doc__ = function.__doc__
        called.__annotations__ = {}
        return called

    return enter


def _parameters(kind: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if is_dataclass(hint := hints[field.name]):
            yield from _parameters(hint)
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _filled(kind: Any, values: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    return kind(**{n: _filled(hints[n], values) if is_dataclass(hints[n]) else values[n] for n in names})


def _locked(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise SteelyardError(f"--lock is '{text}'; give joint=value, e.g. --lock elbow=0.5.") from None


def is_run(text: str) -> bool:
    """Whether `text` names a model that was exported: a run folder, or a description with its sidecar."""
    from steelyard.export.given import is_exported

    return is_exported(text)


def motions_from(run: str, robot: Robot) -> Sequence[Trajectory]:
    """The motions of a `run` of `steelyard excite` for `robot`."""
    from steelyard.excitation.motion_design import read_design

    return read_design(run, robot).trajectories


def logs_from(paths: Sequence[str] | None, robot: Robot, mapping: str) -> list[Log]:
    """The logs `paths` of `robot`; `mapping` is the file that says what their columns mean, "" for none."""
    from steelyard.signals.read import read_log

    return [read_log(path, robot, mapping or None) for path in paths or ()]


def description(robot: str) -> Path | None:
    """The file that the option `robot` names, where it can be written again with other numbers."""
    return Path(robot) if robot.lower().endswith((".urdf", ".xml")) else None


def words(text: str) -> list[str]:
    """The words between commas of `text`."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(option: str, text: str, count: int) -> Sequence[float]:
    """So many (`count`) numbers between commas of `text`; `option` is named in the complaint."""
    from steelyard.ground.field import LARGEST_NUMBER

    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count or not all(abs(x) <= LARGEST_NUMBER for x in values):
        raise SteelyardError(f"{option} is '{text}'; give {count} finite numbers with commas between, e.g. 0,0,-9.81.")
    return values


def per_joint(option: str, text: str) -> Any:
    """`text` as one number, one per joint, or pairs low:high; None for "none", which lifts a limit. `option` is named
    in the complaint."""
    if text.lower() in ("none", "off", "inf"):
        return None
    parts = words(text)
    try:
        if any(":" in part for part in parts):
            pairs = [tuple(float(x) for x in part.split(":")) for part in parts]
            if any(len(pair) != 2 or any(x != x for x in pair) for pair in pairs):
                raise ValueError
            return pairs
        values = [float(part) for part in parts]
        if any(x != x for x in values):  # not a number
            raise ValueError
    except ValueError:
        values = []
    if not values:
        raise SteelyardError(
            f"{option} is '{text}'; give one number, one per joint with commas between (positions also as low:high), "
            "or none."
        )
    return values[0] if len(values) == 1 else values
