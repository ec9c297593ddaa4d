"""Checks in run folders: result.json, and evidence.json with the pictures of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from steelyard.check.check import Check
from steelyard.check.pictures import FindingPicture
from steelyard.errors import SteelyardError
from steelyard.ground.field import Field
from steelyard.ground.outcome import RESULT, Content, json_text
from steelyard.ground.reasons import WHY_NULL
from steelyard.ground.schema import build
from steelyard.ground.untrusted_files import read_json

EVIDENCE = "evidence.json"
_REMEDY = "check the logs again"


def evidence_file(checks: Sequence[Check]) -> dict[str, Content]:
    """Write the pictures of `checks`, log by log, as a file; none if there are no pictures."""
    if not any(check.pictures for check in checks):
        return {}
    return {EVIDENCE: json_text([{key: asdict(made) for key, made in check.pictures.items()} for check in checks])}


def read_checks(folder: Path) -> list[tuple[str, Check]]:
    """Read the checks of a run `folder` with the names of their logs; "" for a single log."""
    found = read_json(folder / RESULT, SteelyardError, _REMEDY)
    several = isinstance(found.value, Mapping) and "logs" in found.value
    logs = found.entries()["logs"].items("log") if several else [found]
    pictures: list[Any] = []
    if (folder / EVIDENCE).is_file():
        pictures = [dict(one.entries()) for one in read_json(folder / EVIDENCE, SteelyardError, _REMEDY).items("log")]
    out = []
    for k, one in enumerate(logs):
        if not isinstance(one.value, Mapping):
            raise SteelyardError(f"{folder / RESULT}: has no check of log {k + 1}; {_REMEDY}.")
        # Refuted assumptions are among the findings; the table of the ledger is for programs.
        known = {key: x for key, x in one.value.items() if key not in (WHY_NULL, "command", "log", "assumptions")}
        check = build(Check, Field(known, str(folder / RESULT), error=SteelyardError), others=True)
        if k < len(pictures):
            check = replace(check, pictures={key: build(FindingPicture, x) for key, x in pictures[k].items()})
        out.append((str(one.value.get("log", "")), check))
    if not out:
        raise SteelyardError(f"{folder / RESULT}: has no checks; {_REMEDY}.")
    return out
