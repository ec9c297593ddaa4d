"""A motion of `excite`, shared by all tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from use_cases import run


@pytest.fixture(scope="module")
def motion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `excite`."""
    folder = tmp_path_factory.mktemp("designed") / "motion"
    quick = ("--duration", 2, "--rate", 50, "--harmonics", 3, "--no-collision", "--time", 0)
    assert run("excite", "szabo3r", *quick, "-o", folder).exit_code == 0
    return folder
