"""The allow-list of job commands: only commands that the studio composes, with paths inside its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.errors import shortened
from steelyard.studio.containment import OWN, StudioError, path_inside

# Live sources of samples: text that can be neither an option nor a path.
WATCH_SOURCE = re.compile(
    r"(tcp|udp):\d{2,5}|(tcp-to):[\w.-]{1,100}:\d{2,5}|rtde:[\w.-]{1,100}|zenoh:[\w/]{1,100}(@[\w.-]{1,100}(:\d{2,5})?)?"
)
# Folder for the checkpoints of searches, relative to the studio's folder.
CHECKPOINTS = f"{OWN}/motion"
_LONGEST_TEXT, _MOST_WORDS = 2000, 20_000
# Names of methods, formats or settings; neither a path nor an option.
_NAME = re.compile(r"\w[\w:=.,+@;()\[\] -]*")
_NUMBERS = re.compile(r"[-+0-9.eE,:]+")
_LOAD = re.compile(r"[^/\\=-][^/\\=]*")

# Whether a word is allowed at its position.
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


def _nothing(_: Path, word: str) -> bool:
    return not word


def _loaded_log(root: Path, word: str) -> bool:
    name, equals, path = word.partition("=")
    return _inside(root, path if equals and _LOAD.fullmatch(name) else word)


def _source(root: Path, word: str) -> bool:
    return WATCH_SOURCE.fullmatch(word) is not None or _inside(root, word)


def _name_or_path(root: Path, word: str) -> bool:
    return _name(root, word) or _inside(root, word)


@dataclass(frozen=True)
class _Command:
    """Allowed arguments of a command.

    Args:
        options: Rule for the value of each option; None for an option without a value.
        positions: Rules of the positional arguments, in order.
        more: Rule of all further positional arguments; None to refuse them.
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
        "--population": _numbers, "--generations": _numbers, "--seed": _numbers, "--search-time": _numbers,
        "--box": _numbers,
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
    "calibrate": _Command({
        **_OUTPUT, "--holdout": _numbers, "--sigma": _numbers, "--only": _name, "--points": _name,
        "--torques": _inside, "--map": _nothing,
    }, (_name_or_path, _inside)),
    "actuator": _Command({
        **_OUTPUT, "--runs": _inside, "--kind": _name, "--friction": _name, "--leave-out": _name, "--holdout": _name,
        "--mass": _numbers, "--length": _numbers, "--arm-mass": _numbers, "--kp": _numbers, "--kd": _numbers,
        "--volts": _numbers, "--robot": _name_or_path, "--joint": _text, "--units": _name, "--columns": _text,
        "--name": _name, "--simulators": None,
    }, (_inside,), _inside),
    "watch": _Command({"--map": _inside, "--json": None, "--every": _numbers}, (_inside, _source)),
}  # fmt: skip


def check_command(root: Path, words: Sequence[str], pyramids: Path | None = None) -> tuple[str, ...]:
    """Return the words of a command, or raise a StudioError if the studio does not compose such commands.

    Args:
        root: The studio's folder, a real path.
        words: Words of the command, without `steelyard`.
        pyramids: Folder for plots of long logs; None: such jobs are refused.
    """
    if len(words) > _MOST_WORDS or not all(isinstance(w, str) and len(w) <= _LONGEST_TEXT for w in words):
        raise StudioError("The studio does not run this command: it has too many, too long or invalid words.")
    if words[:2] in (["-m", "pyramid"], ("-m", "pyramid")):
        if len(words) != 4 or pyramids is None or Path(words[3]).parent != pyramids or not _inside(root, words[2]):
            raise _refusal(" ".join(words[:2]), words[-1])
        return tuple(words)
    command = _COMMANDS.get(words[0]) if words else None
    if command is None:
        raise _refusal("", words[0] if words else "")
    rest, position = iter(words[1:]), 0
    for word in rest:
        if word.startswith("-"):
            if word not in command.options:
                raise _refusal(words[0], word)
            rule = command.options[word]
            if rule is not None and ((value := next(rest, None)) is None or not rule(root, value)):
                raise _refusal(words[0], f"{word} {value or ''}".strip())
            continue
        rule = command.positions[position] if position < len(command.positions) else command.more
        if rule is None or not rule(root, word):
            raise _refusal(words[0], word)
        position += 1
    return tuple(words)


def _refusal(command: str, word: str) -> StudioError:
    text = f"steelyard {command}".strip()
    return StudioError(
        f"The studio does not run this command ({text}, '{shortened(word, 80)}'). It only runs its own commands with "
        "paths inside its folder; run other commands in a terminal."
    )
