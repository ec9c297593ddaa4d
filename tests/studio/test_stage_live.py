"""The live page of the monitor in the stage Use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from simulated_arms import arm_folder

from steelyard.studio.live import live_html, watch_command
from steelyard.studio.stage import FormData
from steelyard.studio.studio_folder import StudioError, StudioFolder

REPORT = {
    "t": 12.5, "stale": False, "counts": {"samples": 1250},
    "contact": {"external_torque": [0.1, -9.0], "limit": [2.0, 3.0], "touched": True, "contacts": 1},
    "load": {"carries": True, "mass": 2.0, "mass_error": 0.05, "settled": True}, "model": {"true": False},
}  # fmt: skip


def test_the_last_report_is_shown() -> None:
    older = json.dumps({**REPORT, "t": 1.0, "contact": {**REPORT["contact"], "touched": False}})  # type: ignore[dict-item]
    event = json.dumps({"t": 12.4, "event": "contact", "message": "<b>link2</b> was touched", "alarm": True})
    page = live_html("\n".join([older, "text on standard error", event, json.dumps(REPORT), '{"t": 13.0, "cou']))
    assert "t = 12.50 s, 1250 samples" in page
    assert "Contact detected" in page
    assert "Payload 2 ± 0.098 kg" in page
    assert "no longer agree with the model" in page
    assert "&lt;b&gt;link2&lt;/b&gt; was touched" in page
    assert "Waiting for samples" in live_html("")
    assert "No new samples arrive" in live_html(json.dumps({**REPORT, "stale": True}))


@pytest.mark.parametrize(
    "source", ["-", "--state=x", "file:/etc/passwd", "../log.csv", "unix:/tmp/x", "tcp:0.0.0.0:80", "tcp:x"]
)
def test_an_invalid_source_is_refused(tmp_path: Path, source: str) -> None:
    folder = StudioFolder(arm_folder(tmp_path))
    with pytest.raises(StudioError, match="is not a source"):
        watch_command(folder, FormData([("source", source), ("model", "runs/identify-1")]))
