"""`Project`: steelyard.toml, the common settings of all commands and notebooks in a folder."""

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
from steelyard.robot.limit_options import LimitOptions

if TYPE_CHECKING:
    from steelyard.check import Check, Checks
    from steelyard.excitation import Plan
    from steelyard.identification.identification import Identification
    from steelyard.robot.robot import Robot
    from steelyard.signals.log import Log

PROJECT_FILE = "steelyard.toml"
# Comma-separated text, or a list of texts.
Names = str | tuple[str, ...]


class ProjectError(SteelyardError):
    """A project file cannot be used; the message names the file, the table and the key, and the remedy."""


@dataclass(frozen=True)
class ProjectLogs:
    """Logs by their role: paths or patterns such as "logs/*.csv", relative to the file.

    Attributes:
        identify: Logs for the fit.
        validate: Logs for validation.
        friction: Logs with constant speeds.
        payload: Logs with a payload: a list, or one list for each named payload.
        bare: Logs without a payload, for comparison.
        healthy: Logs that later logs are compared with.
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
    """Content of a project file. Its paths are relative to it; methods convert them to the current folder."""

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
    limits: LimitOptions = field(default_factory=LimitOptions)
    logs: ProjectLogs = field(default_factory=ProjectLogs)
    model: str = ""
    motion: str = ""
    runs: str = ""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Project:
        """Read the project file `path`."""
        source = Path(path)
        data = read_document(source, ProjectError)
        return build(Project, Field(data, str(source), error=ProjectError), file=source)

    @staticmethod
    def find(start: str | os.PathLike[str] = ".") -> Project:
        """Read the first steelyard.toml from the folder `start` upward, up to the folder that contains `.git`."""
        found = project_file(start)
        if found is None:
            raise ProjectError(
                f"There is no {PROJECT_FILE} in {Path(start).absolute()} or above; write one, or run `steelyard init "
                "ROBOT LOG…`."
            )
        return Project.load(found)

    def path_of(self, text: str) -> str:
        """Convert the path `text` of the file to the current folder; a name without a file is returned unchanged."""
        if not text or not (Path(text).suffix or os.path.lexists(self.file.parent / text)):
            return text
        return from_here(self.file.parent / text)

    def path_in(self, *parts: str) -> str:
        """Join `parts` below the folder of the project file, relative to the current folder."""
        return from_here(self.file.parent.joinpath(*parts))

    def log_paths(self, role: str = "") -> list[str]:
        """List the logs of a `role` (see `ProjectLogs`), or of all roles, without duplicates."""
        wanted = [role] if role else list(ROLES)
        paths = [path for one in wanted for group in self.log_groups(one).values() for path in group]
        return list(dict.fromkeys(paths))

    def log_groups(self, role: str) -> dict[str, list[str]]:
        """Return the logs of a `role` by the name of their payload; "" without a name."""
        if role not in ROLES:
            raise ProjectError(f"{self.file}: logs have no role '{role}'; choose one of {', '.join(ROLES)}.")
        stated = getattr(self.logs, role)
        groups = stated if isinstance(stated, Mapping) else {"": stated}
        lists = {name: [texts] if isinstance(texts, str) else list(texts) for name, texts in groups.items()}
        return {name: [p for text in texts for p in self._expanded(role, text)] for name, texts in lists.items()}

    def _expanded(self, role: str, text: str) -> list[str]:
        if not any(c in text for c in "*?["):
            return [from_here(self.file.parent / text)]
        found = sorted(glob(text, root_dir=self.file.parent, recursive=True))
        if not found:
            raise ProjectError(f"{self.file}: logs: {role}: '{text}' matches no file; correct it, or leave it out.")
        return [from_here(self.file.parent / name) for name in found]

    # ------------------------------------------------------------ actions

    def load_robot(self, **changes: Any) -> Robot:
        """Load the robot; `changes` are arguments of `steelyard.load_robot` that replace those of the file."""
        from steelyard.robot.load import load_robot

        if not self.robot:
            raise ProjectError(f"{self.file}: states no robot; add robot = 'arm.urdf'.")
        own = {
            "joints": listed_names(self.joints) or None,
            "locked": dict(self.lock) or None,
            "gravity": self.gravity,
            "snap": self.snap,
        }
        return load_robot(self.path_of(self.robot), **{**own, **changes})

    def read_logs(self, role: str = "identify", robot: Robot | None = None) -> list[Log]:
        """Read the logs of a role.

        Args:
            role: The role; "": all roles.
            robot: Robot of the logs; default: the project's.
        """
        from steelyard.signals.read import read_log

        whose = robot if robot is not None else self.load_robot()
        return [read_log(path, whose, self.path_of(self.mapping) or None) for path in self.log_paths(role)]

    def check(self) -> Check | Checks:
        """Check the logs of all roles as `steelyard check` does."""
        from steelyard.check import check_log
        from steelyard.check.several_checks import join_checks

        robot, paths = self.load_robot(), self.log_paths()
        logs = self.read_logs("", robot)
        return join_checks(paths, [check_log(robot, log, listed_names(self.terms) or None) for log in logs])

    def identify(self, **options: Any) -> Identification:
        """Fit the logs of role `identify`, validate on those of `validate`; `options` as of `steelyard.identify`."""
        from steelyard.identification.identify_files import identify_files

        logs, judges = ([Path(p) for p in self.log_paths(role)] for role in ("identify", "validate"))
        if not logs:
            raise ProjectError(f"{self.file}: states no log to identify from; add [logs] with identify = ['run.csv'].")
        own = {"terms": listed_names(self.terms) or None, "mapping": self.path_of(self.mapping) or None}
        return identify_files(self.load_robot(), logs, judges, **{**own, **options})

    def excite(self, **options: Any) -> Plan:
        """Design a motion within the project's limits; `options` as of `steelyard.excite`."""
        from steelyard.excitation import excite

        own = {
            "limits": self.limits.stated() or None,
            "packages": [self.path_of(p) for p in listed_names(self.packages)],
        }
        return excite(self.load_robot(), **{**own, **options})


def listed_names(names: Names) -> list[str]:
    """Convert `names`, a list or comma-separated text, to a list."""
    return [n.strip() for n in names.split(",") if n.strip()] if isinstance(names, str) else list(names)


def from_here(path: Path) -> str:
    """Convert `path` to the current folder; an absolute path if it is on another drive."""
    try:
        return os.path.relpath(path)
    except ValueError:
        return str(path.absolute())


def project_file(start: str | os.PathLike[str] = ".") -> Path | None:
    """Find the first steelyard.toml from the folder `start` upward, up to the folder that contains `.git`."""
    place = Path(start).absolute()
    for folder in (place, *place.parents):
        if (folder / PROJECT_FILE).is_file():
            return Path(from_here(folder / PROJECT_FILE))
        if (folder / ".git").exists():
            return None
    return None
