"""Tab completes commands, options, robots, terms, schemes and estimators, and imports little."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.completions import COMPLETIONS, one_of, robots, some_of
from steelyard.estimation.registry import ESTIMATORS
from steelyard.excitation.criteria import CRITERIA
from steelyard.excitation.excite import FAMILIES, OPTIMISERS
from steelyard.papers import PAPERS
from steelyard.parameters.term import TERMS
from steelyard.regression.schemes import SCHEMES
from steelyard.robot.library import builtin_names

MEMBERS = {
    "terms": TERMS, "schemes": SCHEMES, "estimators": ESTIMATORS, "papers": (*PAPERS, "all"), "families": FAMILIES,
    "criteria": CRITERIA, "optimisers": OPTIMISERS,
}  # fmt: skip
PROGRAM = [sys.executable, "-c", "import sys; sys.argv[0] = 'steelyard'; from steelyard.__main__ import main; main()"]


@pytest.mark.parametrize("kind", list(COMPLETIONS))
def test_the_table_equals_the_registries(kind: str) -> None:
    assert sorted(COMPLETIONS[kind]) == sorted(MEMBERS[kind])


def test_robots_complete_to_built_in_ones_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("nsarm.urdf", "ns.csv"):
        Path(name).touch()
    Path("nsfolder").mkdir()
    assert robots("ns") == ["ns16", "nsarm.urdf", f"nsfolder{os.sep}"]
    assert set(builtin_names()) <= set(robots(""))


def test_the_last_of_several_names_is_completed_without_repetition() -> None:
    assert some_of("terms")("viscous,vis") == ["viscous,viscous-asymmetric", "viscous,viscous-saturating"]
    assert one_of("schemes")("filtered-d") == ["filtered-dynamic"]
    assert one_of("schemes")("nothing") == []


@pytest.mark.parametrize(
    ("shell", "words", "expected"),
    [
        ("bash", "steelyard compare ", ["schemes", "estimators"]),
        ("zsh", "steelyard identify ns16 --estimator srck", ["srckf"]),
        ("fish", "steelyard inspect sza", ["szabo3r"]),
    ],
)
def test_each_shell_gets_completions(shell: str, words: str, expected: list[str]) -> None:
    env = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args", "_STEELYARD_COMPLETE": f"complete_{shell}"}  # fmt: skip
    process = subprocess.run(PROGRAM, env=os.environ | env, capture_output=True, text=True, check=True)
    assert process.stderr == ""
    assert all(name in process.stdout for name in expected)


def test_completion_imports_no_numerical_package() -> None:
    script = (
        "import sys\nfrom steelyard.cli import app\nsys.argv[0] = 'steelyard'\n"
        "try:\n    app(prog_name='steelyard')\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    env = {
        "COMP_WORDS": "steelyard identify --estimator e",
        "COMP_CWORD": "3",
        "_STEELYARD_COMPLETE": "complete_bash",
    }
    process = subprocess.run([sys.executable, "-c", script], env=os.environ | env, capture_output=True, text=True)
    assert process.stdout.split() == ["ekf"]
    assert not {"scipy", "rich", "plotly", "llvmlite", "steelyard.robot.robot"} & set(process.stderr.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_accepts_the_script() -> None:
    """Bash accepts the printed script, which completes the program by its name."""
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    process = subprocess.run([*PROGRAM, "--show-completion", "bash"], env=os.environ | env, capture_output=True,
                          text=True, check=True)  # fmt: skip
    read = subprocess.run(["bash", "-c", f"{process.stdout}\ncomplete -p steelyard"], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    assert read.stdout.split()[-1] == "steelyard"
