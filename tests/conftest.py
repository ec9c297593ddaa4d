"""Settings for all tests: on a build server hypothesis repeats the same examples, so that a result means the change.

Every document and page that any test makes is looked at: no null, and no dash, without a reason.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from long_tests import LONG_TESTS

# Two workers with two threads of BLAS each wait for one another: one thread takes half the processor time. That more of
# them give the same bytes is what test_bit_equal.py says. (NumPy reads this when it is imported, which is later.)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark long tests, before pytest selects by marks."""
    home = Path(__file__).parent
    for item in items:
        parts = LONG_TESTS.get(item.path.relative_to(home).as_posix(), ()) if home in item.path.parents else ()
        if any(part in item.name for part in parts):
            item.add_marker(pytest.mark.proof)


def pytest_collection_finish() -> None:
    """Imported and collected objects stay: the garbage collector need not examine them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Studios of the tests store their jobs in a folder of the tests, not in that of the user."""
    os.environ["STEELYARD_STATE"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def no_null_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from report_pages import undashed

    from steelyard.cli import deliver
    from steelyard.ground import outcome, reasons

    contents, explained = outcome.Outcome._contents, reasons.explained

    def looked_at(self: outcome.Outcome, report: bool = True) -> Iterator[tuple[str, outcome.Content]]:
        for name, content in contents(self, report):
            if name == outcome.RESULT and isinstance(content, str):
                assert list(reasons.missing(json.loads(content))) == []
            if name == outcome.REPORT and isinstance(content, str):
                assert undashed(content) == []
            yield name, content

    def printed(value: Any) -> dict[str, Any]:
        made = explained(value)
        assert list(reasons.missing(made)) == []
        return made

    monkeypatch.setattr(outcome.Outcome, "_contents", looked_at)
    monkeypatch.setattr(deliver, "explained", printed)


@pytest.fixture(scope="module")
def designed_motion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `excite`."""
    from model_uses import run

    folder = tmp_path_factory.mktemp("designed") / "motion"
    quick = ("--duration", 2, "--rate", 50, "--harmonics", 3, "--no-collision", "--search-time", 0)
    assert run("excite", "szabo3r", *quick, "-o", folder).exit_code == 0
    return folder
