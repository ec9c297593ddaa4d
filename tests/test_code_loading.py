"""Only few places can turn data into running code: a reader, a cache or a plug-in cannot bring another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sources import parsed

PACKAGE = Path(__file__).parents[1] / "src" / "steelyard"

# Calls by their last name, and the modules that may make them, each with its reason.
WAYS = {
    "eval", "exec", "__import__", "import_module", "run_path", "run_module", "exec_module", "spec_from_file_location",
    "CDLL", "LoadLibrary", "from_data", "system", "Popen", "entry_points",
}  # fmt: skip
ALLOWED = {
    ("ground/registry.py", "import_module"): "modules of this package that hold members",
    ("ground/registry.py", "entry_points"): "what installed packages announce",
    ("cli/app.py", "import_module"): "a command of the table",
    ("papers/__init__.py", "import_module"): "a paper of the table",
    ("cli/completions.py", "entry_points"): "names of what installed packages announce, to be completed",
    ("ground/extras.py", "import_module"): "packages of the extras, by names in this package",
    ("robot/load.py", "import_module"): "a description that the installed robot_descriptions lists",
    ("robot/meshes.py", "import_module"): "trimesh, by its name",
    ("export/fmu.py", "subprocess"): "the C compiler, on code that was written now",
    ("ground/arrays.py", "CDLL"): "the C library of this process",
    ("ground/atomic_files.py", "CDLL"): "the C library of this process",
    ("studio/jobs.py", "subprocess"): "this Python, for a job: a command of this package",
    ("studio/jobs.py", "Popen"): "this Python, for a job: a command of this package",
    ("studio/worker.py", "runpy"): "the program itself, in the process of a job",
    ("studio/worker.py", "run_module"): "the program itself, in the process of a job",
    ("studio/worker.py", "import_module"): "a module of the table in this file",
    (
        "fleet/worker_tasks.py",
        "pickle",
    ): "a model, from the coordinator to its own workers; Dask pickles all it sends",
    (
        "watch/helper_process.py",
        "pickle",
    ): "from the forked helper to its parent, through their own socket",
    ("watch/sources/ros2.py", "import_module"): "rclpy and its messages, by their names",
    ("dynamics/native/_code.py", "from_data"): "machine code that was compiled now, or that the store gave out",
}
FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy", "imp", "subprocess"}


def found() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                called = node.func
                name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                if name in WAYS:
                    yield where, name
                if name == "load" and any(
                    k.arg == "allow_pickle" and getattr(k.value, "value", 1) for k in node.keywords
                ):
                    yield where, "allow_pickle"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
                yield from ((where, name) for name in names if name.split(".")[0] in FORBIDDEN)


def test_code_is_loaded_in_few_places() -> None:
    assert set(found()) == set(ALLOWED)
