"""What an identification is asked for: the fields of the form, and the command that they make."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from steelyard.ground.files import write_whole
from steelyard.studio.basis import log_texts
from steelyard.studio.place import StudioError, StudioFolder

_KEPT = "identify.json"
# What is asked for as it is typed: name in the form, option of the command, label, unit.
NUMBERS = (
    ("cutoff", "--cutoff", "Low-pass of the fit", "Hz"),
    ("score_cutoff", "--score-cutoff", "Low-pass of the scores", "Hz"),
    ("mask", "--mask", "Leave out rows slower than", "rad/s, m/s"),
    ("delay", "--delay", "Torques lag behind by", "s"),
    ("period", "--period", "Average over periods of", "s"),
)
# Menus: name, option, and what it is when nothing is said.
MENUS = (
    ("estimator", "--estimator", "wls"), ("scheme", "--scheme", "dynamic"), ("prior", "--prior", "nominal"),
    ("velocity", "--velocity", "auto"), ("friction", "--friction", ""),
)  # fmt: skip
_SEVERAL = ("judge_by", "term")
_NAMES = (
    "judge", "share", "blocks", "form", "structure", "significant", *(n[0] for n in NUMBERS), *(m[0] for m in MENUS),
)  # fmt: skip


@dataclass(frozen=True)
class IdentifySettings:
    """What the form holds: one text for each name in `one`, several in `many` ("judge_by": logs, "term": terms)."""

    one: Mapping[str, str]
    many: Mapping[str, tuple[str, ...]]

    def get(self, name: str, default: str = "") -> str:
        """The text of a field called `name`, or the `default`."""
        return self.one.get(name, default)


def usual_settings(place: StudioFolder) -> IdentifySettings:
    """What the form of a `place` holds when nobody has touched it: the command without options; where no log judges,
    with a part of the log kept to judge by."""
    judges = tuple(log_texts(place, "validate"))
    one = {"judge": "logs" if judges else "share", "share": "0.3", "blocks": "0.5:3", "form": "physical"}
    return IdentifySettings({**one, **{name: usual for name, _, usual in MENUS}}, {"judge_by": judges, "term": ()})


def kept_settings(place: StudioFolder) -> IdentifySettings:
    """What the form of a `place` held last, or the usual."""
    usual, found = usual_settings(place), None
    with suppress(OSError, ValueError):
        found = json.loads(place.own(_KEPT).read_text("utf-8"))
    if not isinstance(found, dict):
        return usual
    one = {name: value for name, value in found.items() if name in _NAMES and isinstance(value, str)}
    many = {
        name: tuple(map(str, value)) for name, value in found.items() if name in _SEVERAL and isinstance(value, list)
    }
    if one.get("judge") == "logs" and not usual.many["judge_by"] and not many.get("judge_by"):
        one.pop("judge")
    return IdentifySettings({**usual.one, **one}, {**usual.many, **many})


def keep_identify_settings(place: StudioFolder, pairs: Sequence[tuple[str, str]]) -> IdentifySettings:
    """Keep what a form sent, `pairs` of names and values, in its `place`, and return it. What is as usual is not kept:
    it goes with the project."""
    one = {name: value.strip() for name, value in pairs if name in _NAMES}
    many = {name: tuple(value for key, value in pairs if key == name) for name in _SEVERAL}
    usual = usual_settings(place)
    own = {name: value for name, value in one.items() if value != usual.one.get(name, "")}
    several = {name: values for name, values in many.items() if set(values) != set(usual.many[name])}
    write_whole(place.own(_KEPT), json.dumps({**own, **several}))
    return IdentifySettings(one, many)


def identify_words(place: StudioFolder, given: IdentifySettings, facts: Mapping[str, Any]) -> list[str]:
    """The words of the command that identifies as the settings `given` say.

    Args:
        place: whose project it is about.
        given: what the form holds.
        facts: as `identify_facts` tells them.
    """
    words = ["identify", *_judging(place, given), *_structure(place, given, facts)]
    for name, option, usual in MENUS:
        value = given.get(name, usual) or usual
        known = facts["friction"] if name == "friction" else [one[0] for one in facts[name]]
        if value != usual:
            if value not in known:
                raise StudioError(f"There is no {name} '{value[:40]}' here; reload the page.")
            words += [option, value]
    chosen = next((row for row in facts["estimator"] if row[0] == given.get("estimator", "wls")), None)
    if given.get("form") == "free" or (chosen is not None and not chosen[2]):
        words.append("--free")
    for name, option, label, _ in NUMBERS:
        if value := given.get(name):
            words += [option, _number(value, label)]
    return [*words, "--significant"] if given.get("significant") else words


def _judging(place: StudioFolder, given: IdentifySettings) -> list[str]:
    judge = given.get("judge", "logs")
    if judge == "share":
        share = _number(given.get("share", "0.3"), "Share that is held out")
        if not 0.0 < float(share) < 1.0:
            raise StudioError(f"Share that is held out: {share} is not between 0 and 1.")
        return ["--holdout", share]
    if judge == "blocks":
        seconds, colon, every = given.get("blocks").partition(":")
        if not colon or not every.isdecimal():
            raise StudioError("Blocks: write seconds and every how many of them is kept, such as 0.5:3.")
        return ["--holdout-blocks", f"{_number(seconds, 'Blocks')}:{every}"]
    if judge == "none":
        return []
    wanted, usual = given.many.get("judge_by", ()), log_texts(place, "validate")
    if set(wanted) == set(usual):
        return []
    for log in wanted:
        place.inside(log)
        if log not in log_texts(place):
            raise StudioError(f"{log[:120]} is none of the project's logs; reload the page.")
    if not wanted:
        raise StudioError("Choose a log to judge by, or another way of judging.")
    return [word for log in wanted for word in ("--validate", log)]


def _structure(place: StudioFolder, given: IdentifySettings, facts: Mapping[str, Any]) -> list[str]:
    how = given.get("structure")
    if how == "given":
        terms = given.many.get("term", ())
        known = [name for name, _ in facts["term"]]
        if not terms or any(term not in known for term in terms):
            raise StudioError("Choose terms, or let them be searched for.")
        return ["--terms", ",".join(terms)]
    if how == "tune" and place.project().terms:
        return ["--tune"]
    return ["--plain"] if how == "plain" and not place.project().terms else []


def _number(text: str, label: str) -> str:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0.0:
        raise StudioError(f"{label}: '{text[:40]}' is no number that can be.")
    return text.strip()
