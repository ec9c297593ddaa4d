"""The commands that a job may run: those that the studio composes, with paths inside its folder, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.errors import shortened
from steelyard.studio.containment import OWN, StudioError, path_inside

# Where the samples of a watch may come from: text that can be neither an option nor a path.
WATCH_SOURCE = re.compile(
    r"(tcp|udp):\d{2,5}|(tcp-to):[\w.-]{1,100}:\d{2,5}|rtde:[\w.-]{1,100}|zenoh:[\w/]{1,100}(@[\w.-]{1,100}(:\d{2,5})?)?"
)
# Checkpoints of a search lie here, relative to the folder.
CHECKPOINTS = f"{OWN}/motion"
_LONGEST_TEXT, _MOST_WORDS = 2000, 20_000
# A name of a method, a format or a setting, or a list of them: no path, no option.
_NAME = re.compile(r"\w[\w:=.,+@;()\[\] -]*")
_NUMBERS = re.compile(r"[-+0-9.eE,:]+")
_LOAD = re.compile(r"[^/\\=-][^/\\=]*")

# Returns whether a word may stand where it stands.
_Rule = Callable[[Path, str], bool]


def _inside(root: Path, word: str) -> bool:
    try:
        path_inside(root, word)
    except StudioError:
        return False
    return True


def _checkpoint(root: Path, word: str) -> bool:
    try:
        path_inside(root, word, hidden=CHECKPOINTS)
    except StudioError:
        return False
    return Path(word).parent == Path(CHECKPOINTS) and Path(word).suffix == ".json"


def _name(_: Path, word: str) -> bool:
    return _NAME.fullmatch(word) is not None and ".." not in word


def _numbers(_: Path, word: str) -> bool:
    return _NUMBERS.fullmatch(word) is not None


def _text(_: Path, word: str) -> bool:
    return not word.startswith("-") and word.isprintable()


def _loaded_log(root: Path, word: str) -> bool:
    name, equals, path = word.partition("=")
    return _inside(root, path if equals and _LOAD.fullmatch(name) else word)


def _source(root: Path, word: str) -> bool:
    return WATCH_SOURCE.fullmatch(word) is not None or _inside(root, word)


def _name_or_path(root: Path, word: str) -> bool:
    return _name(root, word) or _inside(root, word)


@dataclass(frozen=True)
class _Command:
    """What one command may be given.

    Args:
        options: the rule of each option's value; None for an option without a value.
        positions: the rules of the words that are no options, in order.
        more: the rule of all further words; None: there are none.
    """

    options: Mapping[str, _Rule | None] = field(default_factory=dict)
    positions: tuple[_Rule, ...] = ()
    more: _Rule | None = None


_OUTPUT: dict[str, _Rule | None] = {"-o": _inside}
_COMMANDS: dict[str, _Command] = {
    "check": _Command(_OUTPUT),
    "identify": _Command({
        **_OUTPUT, "--holdout": _numbers, "--holdout-blocks": _numbers, "--validate": _inside, "--terms": _name,
        "--tune": None, "--plain": None, "--free": None, "--significant": None, "--estimator": _name,
        "--scheme": _name, "--prior": _name, "--velocity": _name, "--friction": _name_or_path, "--cutoff": _numbers,
        "--score-cutoff": _numbers, "--mask": _numbers, "--delay": _numbers, "--period": _numbers,
    }),
    "excite": _Command({
        **_OUTPUT, "--duration": _numbers, "--criterion": _name, "--terms": _name, "--floor": _numbers,
        "--frame": _text, "--collision": None, "--no-collision": None, "--clearance": _numbers,
        "--torque-margin": _numbers, "--harmonics": _numbers, "--rate": _numbers, "--optimiser": _name,
        "--population": _numbers, "--generations": _numbers, "--seed": _numbers, "--time": _numbers, "--box": _numbers,
        "--checkpoint": _checkpoint, "--motion": _inside, "--for": _name,
    }),
    "rehearse": _Command(_OUTPUT, (_name_or_path, _inside)),
    "export": _Command({**_OUTPUT, "--to": _name, "--name": _name, "--description": _inside}, (_inside,)),
    "payload": _Command({
        **_OUTPUT, "--with": _loaded_log, "--without": _inside, "--arm": _inside, "--frame": _text, "--for": _name,
    }),
    "friction": _Command(_OUTPUT, (_name_or_path,), _inside),
    "validate": _Command({**_OUTPUT, "--log": _inside}, (_inside,)),
    "predict": _Command(_OUTPUT, (_inside,), _inside),
    "watch": _Command({"--map": _inside, "--json": None, "--every": _numbers}, (_inside, _source)),
}  # fmt: skip


def check_words(root: Path, words: Sequence[str], pyramids: Path | None = None) -> tuple[str, ...]:
    """Return the words of a job's command, or raise a StudioError if the studio would not compose them.

    Args:
        root: the studio's folder, a real path.
        words: of the command, without `steelyard`.
        pyramids: the folder for plots of long logs; None: such a job is refused.
    """
    if len(words) > _MOST_WORDS or not all(isinstance(w, str) and len(w) <= _LONGEST_TEXT for w in words):
        raise StudioError("The studio does not run this command: its words are too many, too long or no text.")
    if words[:2] in (["-m", "pyramid"], ("-m", "pyramid")):
        if len(words) != 4 or pyramids is None or Path(words[3]).parent != pyramids or not _inside(root, words[2]):
            raise _refused(" ".join(words[:2]), words[-1])
        return tuple(words)
    command = _COMMANDS.get(words[0]) if words else None
    if command is None:
        raise _refused("", words[0] if words else "")
    rest, position = iter(words[1:]), 0
    for word in rest:
        if word.startswith("-"):
            if word not in command.options:
                raise _refused(words[0], word)
            rule = command.options[word]
            if rule is not None and ((value := next(rest, None)) is None or not rule(root, value)):
                raise _refused(words[0], f"{word} {value or ''}".strip())
            continue
        rule = command.positions[position] if position < len(command.positions) else command.more
        if rule is None or not rule(root, word):
            raise _refused(words[0], word)
        position += 1
    return tuple(words)


def _refused(command: str, word: str) -> StudioError:
    named = f"steelyard {command}".strip()
    return StudioError(
        f"The studio does not run this command ({named}, '{shortened(word, 80)}'): it runs its own commands with paths "
        "inside its folder; run others in a terminal."
    )
