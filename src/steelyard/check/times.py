"""What reading the log told of its clock and its columns, and how long it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check.entry import Entry
from steelyard.signals.log import Log

# What to do about the findings of the reader, by their kind.
_ADVICE = {
    "gap": "Nothing is bridged; if samples are lost regularly, log at a lower rate or on a faster disk.",
    "jitter": "The time stamps are used; if they are those of arrival, log the controller's own.",
    "duplicate": "Log every sample once; check that two loggers do not write into one file.",
    "reset": "Split the file where the clock starts again.",
    "disorder": "Sort the log by time, or log the controller's own stamps.",
    "isolated": "Cut the log there (window = [first, last] in the mapping).",
    "remark": "",
}
# The reader's remark about zero torques is repeated joint by joint by the check of dead channels.
_SAID_ELSEWHERE = ("zero_torque",)


def check_times(log: Log) -> Iterator[Entry]:
    """The reader's findings, each with an advice, and the log's length and rate."""
    for finding in log.findings:
        if finding.kind not in _SAID_ELSEWHERE:
            advice = _ADVICE.get(finding.kind, "Look at the file there; state in the mapping what the columns mean.")
            yield Entry(finding.kind, finding.severity, finding.message, advice)
    if len(log) < 2:
        yield Entry("short", "problem", f"The log has {len(log)} sample.", "Log a motion of at least ten seconds.")
        return
    period = float(np.median(np.diff(log.t)))
    length = sum(float(log.t[stop - 1] - log.t[start]) for start, stop in log.segments)
    pieces = f", {len(log.segments)} pieces" if len(log.segments) > 1 else ""
    yield Entry("length", "ok", f"{len(log)} samples, {length:.4g} s at {1.0 / period:.4g} Hz{pieces}.")
