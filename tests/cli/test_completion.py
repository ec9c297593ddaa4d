"""Tab offers what there is: commands, options, robots, terms, schemes, estimators; and imports little for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.completions import OFFERED, one_of, robots, some_of
from steelyard.estimation.registry import ESTIMATORS
from steelyard.excitation.criteria import CRITERIA
from steelyard.excitation.excite import FAMILIES, OPTIMISERS
from steelyard.papers import PAPERS
from steelyard.parameters.term import TERMS
from steelyard.regression.schemes import SCHEMES
from steelyard.robot.library import builtin_names

THERE = {
    "terms": TERMS, "schemes": SCHEMES, "estimators": ESTIMATORS, "papers": (*PAPERS, "all"), "families": FAMILIES,
    "criteria": CRITERIA, "optimisers": OPTIMISERS,
}  # fmt: skip
PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'steelyard'; from steelyard.__main__ import main; main()"]


@pytest.mark.parametrize("kind", list(OFFERED))
def test_the_table_is_what_the_registries_hold(kind: str) -> None:
    assert sorted(OFFERED[kind]) == sorted(THERE[kind])


def test_robots_are_built_in_ones_and_files_of_robots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("nsarm.urdf", "ns.csv"):
        Path(name).touch()
    Path("nsfolder").mkdir()
    assert robots("ns") == ["ns16", "nsarm.urdf", f"nsfolder{os.sep}"]
    assert set(builtin_names()) <= set(robots(""))


def test_of_several_names_the_last_is_completed_by_one_that_is_not_there() -> None:
    assert some_of("terms")("viscous,vis") == ["viscous,viscous-asymmetric", "viscous,viscous-saturating"]
    assert one_of("schemes")("filtered-d") == ["filtered-dynamic"]
    assert one_of("schemes")("nothing") == []


@pytest.mark.parametrize(
    ("shell", "words", "offered"),
    [
        ("bash", "steelyard compare ", ["schemes", "estimators"]),
        ("zsh", "steelyard identify ns16 --estimator srck", ["srckf"]),
        ("fish", "steelyard inspect sza", ["szabo3r"]),
    ],
)
def test_shells_are_answered(shell: str, words: str, offered: list[str]) -> None:
    more = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args", "_STEELYARD_COMPLETE": f"complete_{shell}"}  # fmt: skip
    done = subprocess.run(PROGRAM, env={**os.environ, **more}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert all(name in done.stdout for name in offered)


def test_completing_imports_nothing_that_calculates() -> None:
    script = (
        "import sys\nfrom steelyard.cli import app\nsys.argv[0] = 'steelyard'\n"
        "try:\n    app(prog_name='steelyard')\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    more = {"COMP_WORDS": "steelyard identify --estimator e", "COMP_CWORD": "3", "_STEELYARD_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, **more}, capture_output=True, text=True)
    assert done.stdout.split() == ["ekf"]
    assert not {"scipy", "rich", "plotly", "llvmlite", "steelyard.robot.robot"} & set(done.stderr.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_takes_the_script() -> None:
    """The script that is printed is one that the shell itself reads, and it completes the program by its name."""
    more = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run([*PROGRAM, "--show-completion", "bash"], env={**os.environ, **more}, capture_output=True,
                          text=True, check=True)  # fmt: skip
    read = subprocess.run(["bash", "-c", f"{done.stdout}\ncomplete -p steelyard"], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    assert read.stdout.split()[-1] == "steelyard"
