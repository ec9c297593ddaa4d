"""Facts that several files state are the same in all: versions, dependencies and places."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RECIPE = yaml.safe_load((ROOT / "packaging/recipe.yaml").read_text("utf-8"))
# Packages that conda-forge calls otherwise.
CONDA = {"lazy-loader": "lazy_loader", "pyarrow": "pyarrow-core"}


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    asked = {f"python {PROJECT['requires-python']}"}
    for requirement in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
        asked.add(f"{CONDA.get(name, name)} {bound}")
    assert set(RECIPE["requirements"]["run"]) == asked
    (script,) = PROJECT["scripts"].items()
    assert RECIPE["build"]["python"]["entry_points"] == [" = ".join(script)]


def test_all_know_the_same_version_license_and_summary() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {PROJECT["version"], citation["version"], RECIPE["package"]["version"]} == {PROJECT["version"]}
    assert {PROJECT["license"], citation["license"], RECIPE["about"]["license"]} == {PROJECT["license"]}
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_the_image_copies_what_the_wheel_is_built_from() -> None:
    """The build reads pyproject.toml, its hook, the readme and the sources; .dockerignore keeps none of them out."""
    kept_out = (ROOT / ".dockerignore").read_text("utf-8").split()
    for needed in ("pyproject.toml", "hatch_build.py", PROJECT["readme"], "src", *PROJECT["license-files"]):
        assert (ROOT / needed).exists()
        assert needed not in kept_out
    lines = (ROOT / "packaging/Dockerfile").read_text("utf-8").splitlines()
    (entry,) = [line for line in lines if line.startswith("ENTRYPOINT")]
    assert shlex.split(entry.removeprefix("ENTRYPOINT").strip(" []")) == list(PROJECT["scripts"])


def test_every_extra_is_explained() -> None:
    page = (ROOT / "docs/installing.md").read_text("utf-8")
    for extra in PROJECT["optional-dependencies"]:
        assert re.search(rf"^\| [^|]*`{extra}`", page, re.MULTILINE), f"docs/installing.md has no {extra}"
