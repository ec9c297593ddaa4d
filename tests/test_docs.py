"""The code in the documentation runs as it is printed."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from typer.testing import CliRunner

from steelyard.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [
    page for page in PAGES if re.search(r"^```(python|shell)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]
# What is printed as `python` or `shell` is run, `toml`, `yaml` and `c` with a title is written under that name; other
# blocks (`text`) are for reading.
BLOCK = re.compile(r'```(python|shell|toml|yaml|c)(?: title="([\w.-]+)")?\n(.*?)```', re.DOTALL)


# Pages whose code takes longest run under make proof.
_LONG = ("5-seven-axes.md", "project.md")


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.proof) if p.name in _LONG else p for p in WITH_CODE],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one page share their names and their folder, as a reader would type them one after the other."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, title, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(block, str(page), "exec"), names)
        elif kind == "shell":
            _shell(block)
        elif title:
            (tmp_path / title).write_text(block, encoding="utf-8")


def _shell(block: str) -> None:
    """Run the lines one by one, `steelyard` in this process, since a new one would import everything each time."""
    for line in block.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line)
        if program == "steelyard":
            done = CliRunner().invoke(app, arguments)
            # The exit code of `check` reports faults of a log, and a page may be about such a log.
            fine = (0, 1) if arguments[0] == "check" else (0,)
            assert done.exit_code in fine, f"{line}\n{done.output}{done.exception or ''}"
        elif program == "gcc" and shutil.which("gcc") is None:
            pytest.skip("no C compiler here")
        else:
            subprocess.run(["sh", "-c", line], check=True)


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"[\w/-]+\.md", str(yaml.safe_load(text)["nav"]))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent != ROOT}
    assert pages == set(listed), f"in no nav of mkdocs.yml: {pages - set(listed)}; not there: {set(listed) - pages}"
    assert len(listed) == len(set(listed)), "a page stands twice in the navigation of mkdocs.yml"


def test_the_reference_has_every_public_name() -> None:
    import steelyard

    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    names = [name for name in steelyard.__all__ if not isinstance(getattr(steelyard, name), ModuleType)]
    missing = [name for name in names if not re.search(rf"^::: [\w.]+\.{name}$", text, re.MULTILINE)]
    assert not missing, f"add `::: …` for {', '.join(missing)} to a page of docs/api"


def test_every_name_of_the_reference_exists() -> None:
    """`make docs` fails otherwise, which `make test` does not run."""
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), f"{page.name}: {name}"


def test_included_files_exist() -> None:
    """A line that includes a file has exactly the form that the site's plug-in reads."""
    for page in PAGES:
        for line in re.findall(r"^.*--\s*8.*$", page.read_text(encoding="utf-8"), re.MULTILINE):
            included = re.fullmatch(r'--8<-- "([\w/.]+)"', line)
            assert included, f"{page.name}: {line}"
            assert (ROOT / included[1]).is_file(), f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_brackets_of_formulas_are_no_links(page: Path) -> None:
    """Outside of code the site would take `[a][b]` for a link: write a product of brackets with a dot."""
    text = re.sub(r"```.*?```|`[^`]*`|^ {4}[^\n]*", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"\[[^\]\n]+\]\[[^\]\n]*\]", text)


# What users type into the search of the site, and the page that must be first.
SEARCHED = {
    "GUI": "guides/studio.md",
    "floating base": "guides/floating.md",
    "dynamixel": "guides/actuators.md",
    "gravity compensation": "guides/gravity.md",
    "armature": "terms.md",
    "encoder offset": "guides/calibration.md",
    "hysteresis": "theory/friction.md",
    "error bars": "theory/error-bars.md",
    "collision": "theory/contact.md",
    "excitation": "guides/excitation.md",
    "lerobot": "guides/formats.md",
    "feedforward": "using-the-model.md",
    "mujoco": "using-the-model.md",
}


@pytest.mark.parametrize("words", SEARCHED)
def test_the_page_of_a_search_word_has_it_in_a_heading(words: str) -> None:
    """The search weighs words in headings a thousand times, then the factor of the page."""
    spec = importlib.util.spec_from_file_location("search_boost", ROOT / "packaging/search_boost.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    separator = next(
        plugin["search"]["separator"]
        for plugin in yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8").replace("!!", ""))["plugins"]
        if isinstance(plugin, dict) and "search" in plugin
    )
    having: dict[str, float] = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for heading in re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            tokens = re.split(separator, heading.lower())
            if all(word in tokens for word in words.lower().split()):
                name = page.relative_to(ROOT / "docs").as_posix()
                having[name] = max(having.get(name, 0.0), hook.boost(name))
    assert having
    assert max(having, key=lambda name: having[name]) == SEARCHED[words]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "docs/architecture.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    """Names that begin at the root of the repository; capitals stand for a name of your own."""
    named = re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[a-z0-9_/.-]+)`", (ROOT / page).read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []
