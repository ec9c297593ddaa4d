"""The applications use exported names only, every command has its function in Python, and results print in short."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import isabstract
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from sources import parsed

import steelyard as sy
from steelyard.cli.app import COMMANDS
from steelyard.ground.display import DisplayMixin
from steelyard.ground.short_repr import short_repr

PACKAGE = Path(sy.__file__).parent
# Applications, and the rooms that no list of exports describes: the ground floor is for all.
APPLICATIONS = ("cli", "studio", "fleet", "watch")
GROUND = ("ground", "errors")
# Names that an application uses although their room does not export them: (application, room, name); may only shrink.
REMAINDER: set[tuple[str, str, str]] = set()


@cache
def exports(room: str) -> frozenset[str]:
    """Names that a room exports: its `__all__`, or what the file defines if the room is a single file."""
    folder = PACKAGE / room
    file = next(f for f in (folder / "__init__.pyi", folder / "__init__.py", folder.with_suffix(".py")) if f.is_file())
    tree = parsed(file)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset(_defined(tree))


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def imported(application: str) -> Iterator[tuple[str, str]]:
    """Rooms and names that an application imports from other rooms of this package."""
    for path in (PACKAGE / application).rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steelyard."):
                room = (node.module or "").split(".")[1]
                if room not in (application, *GROUND):
                    yield from ((room, alias.name) for alias in node.names)


@pytest.mark.parametrize("application", APPLICATIONS)
def test_an_application_imports_exported_names_only(application: str) -> None:
    used = set(imported(application))
    assert used, "the application was not found"
    private = {(application, room, name) for room, name in used if name not in exports(room) | set(sy.__all__)}
    listed = {entry for entry in REMAINDER if entry[0] == application}
    assert private <= listed, f"export these from their room: {sorted(private - listed)}"
    assert listed <= private, f"no longer needed: {sorted(listed - private)}"


# The function of each command in Python.
FUNCTIONS = {
    "calibrate": "calibrate", "check": "check_log",
    "compare estimators": "compare_on_log", "compare schemes": "compare_schemes",
    "actuator": "identify_actuator",
    "demo": "run_demo", "excite": "excite", "export": "ModelExport", "fleet": "identify_fleet",
    "elastic": "identify_elasticity",
    "friction": "measure_friction", "gravity": "identify_gravity", "identify": "identify", "inspect": "inspect_robot",
    "local design": "design_regions", "local identify": "identify_locally", "local recalibrate": "local.recalibrate",
    "local validate": "validate_bank",
    "map": "guess_mapping", "match": "match_robot", "payload": "identify_payload", "predict": "predict",
    "rehearse": "rehearse", "reproduce": "reproduce", "robots": "builtin_names", "sequential": "identify_sequentially",
    "simulate": "simulate_model", "validate": "validate_on_logs", "watch": "monitor",
}  # fmt: skip
NO_FUNCTION = {"init": "writes a project file", "studio": "starts a server", "compare": "a group", "local": "a group"}


def test_every_command_has_its_function_in_python() -> None:
    commands = set(COMMANDS)
    assert commands <= set(FUNCTIONS) | set(NO_FUNCTION)
    assert set(FUNCTIONS) <= commands
    for name in FUNCTIONS.values():
        assert callable(attrgetter(name)(sy)), name


def test_every_room_that_applications_use_is_an_attribute_of_the_package() -> None:
    """A room without a list of exports is a single file, or not meant for use from outside."""
    for stub in PACKAGE.glob("*/__init__.pyi"):
        room = stub.parent.name
        if room not in ("ground", "studio", "use"):
            assert getattr(sy, room).__name__ == f"steelyard.{room}"


# A terminal of 100 columns shows this in five lines.
MOST = 500
# Dataclasses whose fields decide what is computed keep the full `repr`: a saved state recognises its settings by it.
SETTINGS = {
    "BallScrew", "CartesianRegion", "ConstantRatio", "Cosines", "EarlierLogs", "Finding", "Fixed", "JointRegion",
    "KnownFriction", "Limits", "ModelFormat", "NominalTerm", "Plane", "Point", "Preparation", "Prior", "Project",
    "SearchSettings", "Sensors", "ServeOptions", "SplinedQuintic", "Tuning", "Verdict", "ViaPoints",
    "WatchSettings", "Wave", "Way", "Profile", "MotionLimits", "CircleMove", "JointMove", "LineMove", "Program",
    "ProgramMotion", "ProgramRegion", "Coefficients", "Region", "Trajectory", "Transmission",
}  # fmt: skip


def public_classes() -> dict[str, type]:
    """Classes that the package and its rooms export, by name."""
    rooms = [sy, *(import_module(f"steelyard.{stub.parent.name}") for stub in PACKAGE.glob("*/__init__.pyi"))]
    found = {name: getattr(room, name) for room in rooms for name in room.__all__}
    return {name: x for name, x in found.items() if isinstance(x, type) and x.__module__.startswith("steelyard.")}


class _Named:
    """Object with a long `repr` that is inside others."""

    name = "x" * 1000

    def __repr__(self) -> str:
        return "y" * 10_000


LARGE = (np.zeros((1000, 7)), tuple(range(10_000)), {str(k): k for k in range(1000)}, "z" * 10_000, _Named())


def test_results_print_in_a_few_lines_whatever_they_hold() -> None:
    """Every field in turn, and all at once, holds a large array, a long list, a long text or a large object."""
    settings = (sy.parameters.Term, sy.estimation.Estimator, sy.excitation.Criterion)
    classes = [c for c in public_classes().values() if is_dataclass(c) and not issubclass(c, settings)]
    checked = 0
    for cls in classes:
        if cls.__name__ in SETTINGS or issubclass(cls, DisplayMixin) or not _is_generated(cls):
            continue
        for value in LARGE:
            made = object.__new__(cls)
            for field in fields(cls):
                object.__setattr__(made, field.name, value)
            assert len(repr(made)) <= MOST, f"{cls.__module__}.{cls.__name__}: decorate it with `short_repr`"
            assert repr(made).startswith(cls.__name__)
        checked += 1
    assert checked > 90, "the classes were not found"


def _is_generated(cls: type) -> bool:
    """Whether a class prints its fields one after the other, and has others than numbers and short texts."""
    generated = getattr(getattr(cls.__repr__, "__wrapped__", cls.__repr__), "__code__", None)
    if generated is None or not (
        generated.co_filename == "<string>" or cls.__repr__.__module__ == short_repr.__module__
    ):
        return False
    return not isabstract(cls) and any(field.repr and not _is_scalar(str(field.type)) for field in fields(cls))


def _is_scalar(annotation: str) -> bool:
    return set(annotation.replace(" ", "").split("|")) <= {"float", "int", "str", "bool", "None"}


def test_results_of_a_workflow_print_in_a_few_lines() -> None:
    robot = sy.load_robot("rotradi")
    model = sy.Model.nominal(robot)
    rng = np.random.default_rng(0)
    run = sy.simulate(model, duration=0.2)
    objects = [
        robot, *robot.joints, *robot.links, model, model.terms, sy.terms(robot), sy.base_parameters(robot), run,
        run.log(), sy.inspect_robot(robot), sy.check_log(robot, run.log()),
        sy.Preparation(), sy.excitation.default_limits(robot),
        sy.dynamics.Dynamics(robot), sy.excitation.SearchSettings(), sy.WatchSettings(), sy.Protocol(), rng,
    ]  # fmt: skip
    for each in objects:
        assert len(repr(each)) <= MOST, type(each)


def test_a_short_result_keeps_its_numbers() -> None:
    report = sy.ProgressReport("Fitting", 0.25, "wls", {"best": 1.0})
    assert repr(report) == "ProgressReport(stage='Fitting', fraction=0.25, message='wls', results=<1 by name>)"


def _wrong_shapes() -> dict[str, Callable[[], object]]:
    """Calls with one array of a wrong shape each."""
    robot = sy.load_robot("rotradi")
    model, t = sy.Model.nominal(robot), np.arange(100) / 100.0
    three, four = np.zeros((100, 3)), np.zeros((100, 4))
    log = sy.Log(robot.joint_names, t, three, three, three, three)
    return {
        "regressor": lambda: robot.torque_regressor(four, three, three),
        "torque": lambda: model.torque(three, four, three),
        "log": lambda: sy.Log(robot.joint_names, t, four),
        "log of another length": lambda: sy.Log(robot.joint_names, t[:50], three),
        "parameters": lambda: sy.Model(robot, model.terms, np.zeros(5)),
        "limits": lambda: sy.excite(robot, limits={"q": [1.0, 1.0], "dq": 1.0, "ddq": 1.0}),
        "posture": lambda: sy.excite(robot, limits={"q": 1.0, "dq": 1.0, "ddq": 1.0}, posture=[0.0, 0.0]),
        "sweeps": lambda: sy.design_sweeps(robot, posture=[0.0, 0.0]),
        "start": lambda: sy.simulate(model, duration=0.1, q0=[0.0, 0.0]),
        "prior covariance": lambda: sy.recursive(robot, log, P0=np.eye(2)),
        "gains": lambda: sy.PD(kp=[1.0, 1.0, 1.0], kd=[1.0, 1.0]),
    }


@pytest.mark.parametrize("name", _wrong_shapes())
def test_an_array_of_a_wrong_shape_is_a_shape_error(name: str) -> None:
    """The message says which shape came and which one is needed."""
    with pytest.raises(sy.ShapeError, match=r"\d") as caught:
        _wrong_shapes()[name]()
    assert isinstance(caught.value, sy.SteelyardError)
