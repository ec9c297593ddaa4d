"""Settings of an identification: fields of the form, and the command that they produce."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from steelyard.ground.files import write_whole
from steelyard.ground.verb_options import option_texts
from steelyard.identification.identify_options import IdentifyOptions
from steelyard.studio.provenance import log_texts
from steelyard.studio.studio_folder import StudioError, StudioFolder

_SETTINGS_FILE = "identify.json"
_TEXTS = {text.name: text for _, text in option_texts(IdentifyOptions)}
# Number fields: name in the form, option of the command, label, unit.
NUMBERS = tuple(
    (name, _TEXTS[name].flag, _TEXTS[name].label, _TEXTS[name].unit)
    for name in ("cutoff", "score_cutoff", "mask", "delay", "period")
)
# Menus: name, option of the command, default.
MENUS = tuple(
    (name, _TEXTS[name].flag, str(_TEXTS[name].default))
    for name in ("estimator", "scheme", "prior", "velocity", "friction")
)
_SEVERAL = ("judge_by", "term")
_NAMES = (
    "judge", "share", "blocks", "form", "structure", "significant", *(n[0] for n in NUMBERS), *(m[0] for m in MENUS),
)  # fmt: skip


@dataclass(frozen=True)
class IdentifySettings:
    """Values of the form.

    Attributes:
        one: Fields with one value.
        many: Fields with several values: "judge_by" (logs) and "term" (terms).
    """

    one: Mapping[str, str]
    many: Mapping[str, tuple[str, ...]]

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a field.

        Args:
            name: Name of the field.
            default: Value if it is missing.
        """
        return self.one.get(name, default)


def default_settings(folder: StudioFolder) -> IdentifySettings:
    """Return the default values: the command without options, or a hold-out share if `folder` has no validation log."""
    logs = tuple(log_texts(folder, "validate"))
    one = {"judge": "logs" if logs else "share", "share": "0.3", "blocks": "0.5:3", "form": "physical"}
    return IdentifySettings({**one, **{name: value for name, _, value in MENUS}}, {"judge_by": logs, "term": ()})


def saved_settings(folder: StudioFolder) -> IdentifySettings:
    """Return the values that the form of a `folder` was last sent with, completed by the default values."""
    default, saved = default_settings(folder), None
    with suppress(OSError, ValueError):
        saved = json.loads(folder.state_path(_SETTINGS_FILE).read_text("utf-8"))
    if not isinstance(saved, dict):
        return default
    one = {name: value for name, value in saved.items() if name in _NAMES and isinstance(value, str)}
    many = {
        name: tuple(map(str, value)) for name, value in saved.items() if name in _SEVERAL and isinstance(value, list)
    }
    if one.get("judge") == "logs" and not default.many["judge_by"] and not many.get("judge_by"):
        one.pop("judge")
    return IdentifySettings({**default.one, **one}, {**default.many, **many})


def save_identify_settings(folder: StudioFolder, pairs: Sequence[tuple[str, str]]) -> IdentifySettings:
    """Save and return the values of a form; default values are not saved, because they follow the project.

    Args:
        folder: The studio's folder.
        pairs: Names and values of the form.
    """
    one = {name: value.strip() for name, value in pairs if name in _NAMES}
    many = {name: tuple(value for key, value in pairs if key == name) for name in _SEVERAL}
    default = default_settings(folder)
    own = {name: value for name, value in one.items() if value != default.one.get(name, "")}
    several = {name: values for name, values in many.items() if set(values) != set(default.many[name])}
    write_whole(folder.state_path(_SETTINGS_FILE), json.dumps({**own, **several}))
    return IdentifySettings(one, many)


def identify_command(folder: StudioFolder, settings: IdentifySettings, facts: Mapping[str, Any]) -> list[str]:
    """Return the words of the command for some settings.

    Args:
        folder: The studio's folder.
        settings: Values of the form.
        facts: Options, from `identify_facts`.
    """
    words = ["identify", *_validation(folder, settings), *_structure(folder, settings, facts)]
    for name, option, default in MENUS:
        value = settings.get(name, default) or default
        choices = facts["friction"] if name == "friction" else [row[0] for row in facts[name]]
        if value != default:
            if value not in choices:
                raise StudioError(f"'{value[:40]}' is not a choice of {name}; reload the page.")
            words += [option, value]
    estimator = next((row for row in facts["estimator"] if row[0] == settings.get("estimator", "wls")), None)
    if settings.get("form") == "free" or (estimator is not None and not estimator[2]):
        words.append("--free")
    for name, option, label, _ in NUMBERS:
        if value := settings.get(name):
            words += [option, _number(value, label)]
    return [*words, "--significant"] if settings.get("significant") else words


def _validation(folder: StudioFolder, settings: IdentifySettings) -> list[str]:
    kind = settings.get("judge", "logs")
    if kind == "share":
        share = _number(settings.get("share", "0.3"), "Hold-out share")
        if not 0.0 < float(share) < 1.0:
            raise StudioError(f"Hold-out share: {share} is not between 0 and 1.")
        return ["--holdout", share]
    if kind == "blocks":
        seconds, colon, every = settings.get("blocks").partition(":")
        if not colon or not every.isdecimal():
            raise StudioError("Blocks: write SECONDS:EVERY, such as 0.5:3 for every third block of 0.5 s.")
        return ["--holdout-blocks", f"{_number(seconds, 'Blocks')}:{every}"]
    if kind == "none":
        return []
    logs, default = settings.many.get("judge_by", ()), log_texts(folder, "validate")
    if set(logs) == set(default):
        return []
    for log in logs:
        folder.path_inside(log)
        if log not in log_texts(folder):
            raise StudioError(f"{log[:120]} is not a log of the project; reload the page.")
    if not logs:
        raise StudioError("Choose a hold-out log, or another kind of hold-out data.")
    return [word for log in logs for word in ("--validate", log)]


def _structure(folder: StudioFolder, settings: IdentifySettings, facts: Mapping[str, Any]) -> list[str]:
    how = settings.get("structure")
    if how == "given":
        terms = settings.many.get("term", ())
        choices = [name for name, _ in facts["term"]]
        if not terms or any(term not in choices for term in terms):
            raise StudioError("Choose at least one term, or choose the search.")
        return ["--terms", ",".join(terms)]
    if how == "tune" and folder.project().terms:
        return ["--tune"]
    return ["--plain"] if how == "plain" and not folder.project().terms else []


def _number(text: str, label: str) -> str:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0.0:
        raise StudioError(f"{label}: '{text[:40]}' is not a number ≥ 0.")
    return text.strip()
