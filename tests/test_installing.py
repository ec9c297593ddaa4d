"""The commands of Dockerfile and recipe, run step by step in a new environment: wheel, installation, recipe's tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "packaging/Dockerfile").read_text("utf-8")
RECIPE = yaml.safe_load((ROOT / "packaging/recipe.yaml").read_text("utf-8"))
INSTRUCTIONS = {"FROM", "ARG", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Parse the Dockerfile: instruction and words, with continued lines joined and comments removed."""
    lines = [line for line in DOCKERFILE.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(line.split(maxsplit=1)[0], " ".join(line.split(maxsplit=1)[1].split())) for line in joined]


def test_the_dockerfile_parses() -> None:
    parsed = instructions()
    assert {name for name, _ in parsed} <= INSTRUCTIONS
    stages = [words for name, words in parsed if name == "FROM"]
    named = {words.split(" AS ")[1] for words in stages if " AS " in words}
    for name, words in parsed:
        if name == "COPY" and (source := re.match(r"--from=(\w+)", words)):
            assert source[1] in named
    version = re.match(r"python:(\d+)\.(\d+)", stages[-1])
    assert version is not None
    assert (int(version[1]), int(version[2])) >= (3, 11)
    assert [name for name, _ in parsed[-2:]] == ["ENTRYPOINT", "CMD"]
    assert any(name == "USER" for name, _ in parsed)  # not root


@pytest.mark.proof
def test_the_commands_of_image_and_recipe_run_in_a_new_environment(tmp_path: Path) -> None:
    """As the image does it: a wheel of the sources, its installation with all dependencies, and the recipe's tests."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git, for a copy of the sources alone")
    source = tmp_path / "source"
    source.mkdir()
    archive = tmp_path / "source.tar"
    subprocess.run(["git", "archive", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as tar:
        tar.extractall(source, filter="data")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"EXTRAS": ""}
    environment["PATH"] = f"{python.parent}:{environment['PATH']}"
    build, install = (words for name, words in instructions() if name == "RUN")
    install = install.split("&& useradd")[0].strip()  # users of the machine are not ours to add
    for command in (build, install.replace(" && rm -r /wheels", "")):
        here = command.replace("/source", str(source)).replace("/wheels", str(tmp_path / "wheels"))
        done = subprocess.run(["bash", "-c", here], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("steelyard/py.typed", "steelyard/__init__.pyi", "steelyard/studio/assets/studio.css"):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith(".js.gz") for name in names)
    for test in RECIPE["tests"]:
        lines = test.get("script") or [f"python -c 'import {name}'" for name in test["python"]["imports"]]
        for line in lines:
            done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "demo-run/report.html").is_file()
    shown = subprocess.run(["steelyard", "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "identify" in shown.stdout
    assert sys.version_info >= (3, 11)
