"""`Project`: steelyard.toml, which says once what every command and notebook in a folder is about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import SteelyardError
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.schema import build

if TYPE_CHECKING:
    from steelyard.check import Check, Checks
    from steelyard.excitation import Plan
    from steelyard.identification.identification import Identification
    from steelyard.robot.robot import Robot
    from steelyard.signals.log import Log

PROJECT_FILE = "steelyard.toml"
# Text with commas between, or a list of texts.
Names = str | tuple[str, ...]
# One number, one per joint, pairs low and high of positions, or "none".
Limit = float | str | tuple[float | tuple[float, float], ...] | None


class ProjectError(SteelyardError):
    """A project file that cannot be used: names the file, the table and the key, and what to write."""


@dataclass(frozen=True)
class ProjectLimits:
    """What designed motions keep to, as the options of `steelyard excite` say it; None: the robot's own."""

    q: Limit = None
    dq: Limit = None
    ddq: Limit = None
    jerk: Limit = None
    tau: Limit = None
    power: Limit = None


@dataclass(frozen=True)
class ProjectLogs:
    """The logs by what they are for: paths or patterns such as "logs/*.csv", relative to the file.

    `identify` is fitted to, `validate` judges, `friction` holds constant speeds, `payload` (a list, or one for each
    named load) carries loads that `bare` does not, `healthy` is what later logs are compared with.
    """

    identify: Names = ()
    validate: Names = ()
    friction: Names = ()
    payload: Names | Mapping[str, Names] = ()
    bare: Names = ()
    healthy: Names = ()


ROLES = tuple(f.name for f in fields(ProjectLogs))


@dataclass(frozen=True)
class Project:
    """What a project file says. Paths in it are relative to it; methods give them from where one stands."""

    file: Path
    robot: str = ""
    packages: Names = ()
    joints: Names = ()
    lock: Mapping[str, float] = field(default_factory=dict)
    snap: float | None = None
    gravity: tuple[float, float, float] | None = None
    mapping: str = ""
    controller: str = ""
    terms: Names = ()
    limits: ProjectLimits = field(default_factory=ProjectLimits)
    logs: ProjectLogs = field(default_factory=ProjectLogs)
    model: str = ""
    motion: str = ""
    runs: str = ""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Project:
        """The project that the file `path` says."""
        source = Path(path)
        data = read_document(source, ProjectError)
        return build(Project, Field(data, str(source), error=ProjectError), file=source)

    @staticmethod
    def find(start: str | os.PathLike[str] = ".") -> Project:
        """The project of the folder `start`: of the first steelyard.toml from there upward, no further than the folder
        that holds `.git`."""
        found = project_file(start)
        if found is None:
            raise ProjectError(
                f"There is no {PROJECT_FILE} in {Path(start).absolute()} or above; write one, or let `steelyard init "
                "ROBOT LOG…` do it."
            )
        return Project.load(found)

    def path_of(self, text: str) -> str:
        """A path of the file as it reads from where one stands; a `text` that is a name (of a built-in robot, say), and
        no file there, stays as it is."""
        if not text or not (Path(text).suffix or os.path.lexists(self.file.parent / text)):
            return text
        return from_here(self.file.parent / text)

    def path_in(self, *parts: str) -> str:
        """The path that `parts` make below the folder of the project file, from where one stands."""
        return from_here(self.file.parent.joinpath(*parts))

    def log_paths(self, role: str = "") -> list[str]:
        """The logs of a `role` (see `ProjectLogs`), or of all roles, each once, from where one stands."""
        wanted = [role] if role else list(ROLES)
        paths = [path for one in wanted for group in self.log_groups(one).values() for path in group]
        return list(dict.fromkeys(paths))

    def log_groups(self, role: str) -> dict[str, list[str]]:
        """The logs of a `role` by the name of the load that they carry; "" where none is named."""
        if role not in ROLES:
            raise ProjectError(f"{self.file}: logs have no role '{role}'; choose one of {', '.join(ROLES)}.")
        given = getattr(self.logs, role)
        groups = given if isinstance(given, Mapping) else {"": given}
        lists = {name: [texts] if isinstance(texts, str) else list(texts) for name, texts in groups.items()}
        return {name: [p for text in texts for p in self._expanded(role, text)] for name, texts in lists.items()}

    def _expanded(self, role: str, text: str) -> list[str]:
        if not any(c in text for c in "*?["):
            return [from_here(self.file.parent / text)]
        found = sorted(glob(text, root_dir=self.file.parent, recursive=True))
        if not found:
            raise ProjectError(f"{self.file}: logs: {role}: '{text}' is no file's name; correct it, or leave it out.")
        return [from_here(self.file.parent / name) for name in found]

    # ------------------------------------------------------------ what Python does with it

    def load_robot(self, **changes: Any) -> Robot:
        """The robot; `changes` are arguments of `steelyard.load_robot` that shall be other than in the file."""
        from steelyard.robot.load import load_robot

        if not self.robot:
            raise ProjectError(f"{self.file}: names no robot; add robot = 'arm.urdf'.")
        own = {
            "joints": listed_names(self.joints) or None,
            "locked": dict(self.lock) or None,
            "gravity": self.gravity,
            "snap": self.snap,
        }
        return load_robot(self.path_of(self.robot), **{**own, **changes})

    def read_logs(self, role: str = "identify", robot: Robot | None = None) -> list[Log]:
        """The logs of a `role` ("": of all), read for `robot` (default: the project's)."""
        from steelyard.signals.read import read_log

        whose = robot if robot is not None else self.load_robot()
        return [read_log(path, whose, self.path_of(self.mapping) or None) for path in self.log_paths(role)]

    def check(self) -> Check | Checks:
        """What `steelyard check` finds in the logs of all roles."""
        from steelyard.check import check_log
        from steelyard.check.many import checked_alike

        robot, paths = self.load_robot(), self.log_paths()
        logs = self.read_logs("", robot)
        return checked_alike(paths, [check_log(robot, log, listed_names(self.terms) or None) for log in logs])

    def identify(self, **options: Any) -> Identification:
        """Identify from the logs to `identify`, judged by those to `validate`; `options` are those of
        `steelyard.identify`."""
        from steelyard.identification.files import identify_files

        logs, judges = ([Path(p) for p in self.log_paths(role)] for role in ("identify", "validate"))
        if not logs:
            raise ProjectError(f"{self.file}: names no log to identify from; add [logs] with identify = ['run.csv'].")
        own = {"terms": listed_names(self.terms) or None, "mapping": self.path_of(self.mapping) or None}
        return identify_files(self.load_robot(), logs, judges, **{**own, **options})

    def excite(self, **options: Any) -> Plan:
        """Design a motion within the project's limits; `options` are those of `steelyard.excite`."""
        from steelyard.excitation import excite

        limits = {k: None if v == "none" else v for k, v in vars(self.limits).items() if v is not None}
        own = {"limits": limits or None, "packages": [self.path_of(p) for p in listed_names(self.packages)]}
        return excite(self.load_robot(), **{**own, **options})


def listed_names(names: Names) -> list[str]:
    """`names` that were given as a list, or as a text with commas between."""
    return [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else list(names)


def from_here(path: Path) -> str:
    """`path` as it reads from where one stands; as it is where there is no way, on another drive."""
    try:
        return os.path.relpath(path)
    except ValueError:
        return str(path.absolute())


def project_file(start: str | os.PathLike[str] = ".") -> Path | None:
    """The first steelyard.toml from the folder `start` upward, no further than the folder that holds `.git`."""
    place = Path(start).absolute()
    for folder in (place, *place.parents):
        if (folder / PROJECT_FILE).is_file():
            return Path(from_here(folder / PROJECT_FILE))
        if (folder / ".git").exists():
            return None
    return None
