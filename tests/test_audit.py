"""The audit of the pinned versions: findings fail, and what was not audited is not called sound."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "packaging"))

from audit import judge, main

SOUND = {"name": "a", "version": "1.0", "vulns": []}
HOLE = {"name": "b", "version": "2.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"], "description": "x"}]}


def _said(*packages: dict) -> str:
    return json.dumps({"dependencies": list(packages), "fixes": []})


def test_findings_fail_and_are_named() -> None:
    assert judge(_said(SOUND), "") == (0, "No vulnerability is known of 1 pinned versions.")
    code, words = judge(_said(SOUND, HOLE), "Found 1 known vulnerability in 1 package")
    assert code == 1
    assert "b 2.0: PYSEC-1; fixed in 2.1" in words


@pytest.mark.parametrize(
    "printed", ["", "no json", "[]", "{}", _said(), _said(SOUND, {"name": "c", "skip_reason": "not on the index"})]
)
def test_what_was_not_audited_is_said(printed: str) -> None:
    code, words = judge(printed, "ERROR: connection refused\n")
    assert code == 2
    assert "audited" in words
    both = _said(HOLE, {"name": "c", "skip_reason": "not on the index"})
    assert judge(both, "")[0] == 1, "a finding counts, whatever was passed over"


def test_a_machine_without_the_database_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without pip-audit, or with versions that no database knows, nothing is called sound."""
    lock = tmp_path / "lock.txt"
    lock.write_text("no-such-package-anywhere==1.0 --hash=sha256:" + "0" * 64 + "\n")
    assert main(lock) == 2
    assert "audited" in capsys.readouterr().out


def test_the_workflow_runs_it() -> None:
    root = Path(__file__).parents[1]
    assert "make audit" in (root / ".github/workflows/test.yml").read_text()
    assert "packaging/audit.py" in (root / "Makefile").read_text()
