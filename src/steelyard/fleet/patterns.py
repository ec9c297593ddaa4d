"""`Pattern`: locations of many logs that contain the robot and the date, such as s3://bucket/{robot}/{date}*.mcap."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from steelyard.fleet.storage import FleetError

_PLACES = re.compile(r"\{(robot|date)(?::([^{}]*))?\}")
# 2026-03-01, 20260301, 2026_03_01-06_30_00 (rosbag2), with or without hours and minutes.
_DAY = r"(?:19|20)\d\d[-_.]?(?:0\d|1[0-2])[-_.]?(?:[0-2]\d|3[01])"
_DATE = rf"{_DAY}(?:[T_-]?[0-2]\d[-_:.]?[0-5]\d(?:[-_:.]?[0-5]\d)?)?"
_IN_NAME = re.compile(rf"(?<!\d)({_DATE})(?!\d)")
_DIGITS = {"%Y": 4, **dict.fromkeys(("%y", "%m", "%d", "%H", "%M", "%S"), 2), "%j": 3}


class Pattern:
    """A location with *, ?, {robot}, {date}, or a date with its format, {date:%y_%m_%d}.

    Args:
        text: The location.
        source: File that contains it, for messages.
    """

    def __init__(self, text: str, source: str) -> None:
        self.text, self.wild = text, _PLACES.sub("*", text)
        self._format = ""
        expression, at, seen = "", 0, set[str]()
        for place in _PLACES.finditer(text):
            name, written = place[1], place[2] or ""
            expression += _as_regex(text[at : place.start()])
            at = place.end()
            if name == "robot" and written:
                raise FleetError(f"{source}: '{place[0]}' is unknown; write {{robot}}.")
            if name in seen:
                expression += rf"(?P={name})"
                continue
            seen.add(name)
            if name == "date" and written:
                self._format = written
                expression += f"(?P<date>{_written_date(written, source)})"
            else:
                expression += f"(?P<date>{_DATE})" if name == "date" else r"(?P<robot>[^/\\]+?)"
        unknown = re.search(r"\{[^{}]*\}", _PLACES.sub("", text))
        if unknown:
            raise FleetError(f"{source}: '{unknown[0]}' is unknown in a pattern; known are {{robot}} and {{date}}.")
        self._regex = re.compile(expression + _as_regex(text[at:])) if seen else None

    def fits(self, url: str) -> bool:
        """Whether `url` matches the pattern including its date; `wild` matches any text in its place."""
        return self._regex is None or self._regex.fullmatch(url) is not None

    def robot_of(self, url: str) -> str | None:
        """Return the robot in `url`; None if it does not match the pattern."""
        return self._group(url, "robot")

    def date_of(self, url: str) -> float | None:
        """Return the date in `url`, seconds since 1970 (UTC); None without one."""
        found = self._group(url, "date")
        return None if found is None else _moment(found, self._format)

    def _group(self, url: str, name: str) -> str | None:
        match = self._regex.fullmatch(url) if self._regex is not None else None
        return match.groupdict().get(name) if match else None


def date_in_name(url: str) -> float | None:
    """Return the date in the file name of `url`, as 2026-03-01 or 20260301_0630, in seconds since 1970 (UTC)."""
    found = _IN_NAME.search(re.split(r"[/\\]", url.partition("::")[0].partition("?")[0])[-1])
    return _moment(found[1], "") if found else None


def _moment(text: str, written: str) -> float | None:
    """Convert a date to seconds since 1970; None if it does not exist."""
    if not written:
        text = re.sub(r"\D", "", text)
        written = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}[len(text)]
    try:
        return datetime.strptime(text, written).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _as_regex(text: str) -> str:
    """Convert a piece of a pattern to a regular expression; * and ? do not match slashes, ** does."""
    out = ""
    for part in re.split(r"(\*\*/?|\*|\?|\[[^\]]*\])", text):
        if part.startswith("**"):
            out += ".*"
        elif part in ("*", "?"):
            out += r"[^/\\]*" if part == "*" else r"[^/\\]"
        elif part.startswith("[") and part.endswith("]"):
            out += "[" + part[1:-1].replace("\\", r"\\").replace("!", "^", 1) + "]"
        else:
            out += re.escape(part)
    return out


def _written_date(written: str, source: str) -> str:
    """Convert a date format of `strftime` to a regular expression; only numeric fields are supported."""
    out = ""
    for part in re.split(r"(%.)", written):
        if part.startswith("%") and part not in _DIGITS:
            known = ", ".join(_DIGITS)
            raise FleetError(f"{source}: '{part}' in the date is unknown; use {known}, as in {{date:%y_%m_%d}}.")
        out += rf"\d{{{_DIGITS[part]}}}" if part in _DIGITS else re.escape(part)
    return out
