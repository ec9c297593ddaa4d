"""Every output of every command has finite numbers, or nulls with a reason."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from report_pages import own_part, undashed

from steelyard.ground.reasons import missing

sys.path.insert(0, str(Path(__file__).parents[1] / "chaos"))
from writing_commands import COMMANDS, Writing, begin, ended, import_all, prepare, program

READING = tuple(
    Writing(" ".join(words), (*words, "--json"), ends)
    for words, ends in (
        (("inspect", "ns16", "--terms", "nominal"), (0,)), (("inspect", "rotradi"), (0,)), (("robots",), (0,)),
        (("check", "rotradi", "IN/log.csv"), (0, 1)), (("identify", "rotradi", "IN/log.csv"), (0,)),
        (("identify", "rotradi", "IN/log.csv", "IN/loaded.csv", "--terms", "viscous,coulomb", "--significant"), (0,)),
    )
)  # fmt: skip
# Percentages with an exponent, and values that are not numbers; a letter before excludes symbols such as ε.
INVALID = re.compile(r"\de\+\d+ %|\b(nan|inf|NaN|Infinity)\b|(?<![\w.])None(?![\w.])")


@pytest.mark.proof
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks")
def test_every_command_explains_its_nulls_and_dashes(tmp_path: Path) -> None:
    import_all()
    prepare(tmp_path / "in")
    for k, writing in enumerate((*COMMANDS, *READING)):
        out, output = tmp_path / f"out-{k}", tmp_path / f"output-{k}"
        assert ended(begin(program(writing.typed(tmp_path / "in", out)), output)) in writing.ends, output.read_text()
        if "--json" in writing.words:
            document = json.loads(output.read_text())
            for part in document if isinstance(document, list) else [document]:
                assert list(missing(part)) == [], writing.name
        else:
            assert INVALID.findall(output.read_text()) == [], writing.name
        for path in out.rglob("result.json") if out.is_dir() else ():
            assert list(missing(json.loads(path.read_text()))) == [], path
        for path in out.rglob("report.html") if out.is_dir() else ():
            page = re.sub(r"<(style|script).*?</\1>", "", own_part(path.read_text()), flags=re.DOTALL)
            assert undashed(page) == [], writing.name
            assert INVALID.findall(re.sub(r"<[^>]*>", " ", page)) == [], writing.name
