"""Checks of several logs of one robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.check.check import Check
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from rich.console import Console


@short_repr
@dataclass(frozen=True)
class Checks(Outcome):
    """Checks of several logs, with the names of the logs; the worst one decides."""

    names: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of the command: that of the worst log."""
        return max(check.exit_code for check in self.checks)

    @property
    def verdict(self) -> str:
        """How many of the logs can be identified from, and which cannot."""
        bad = [name for name, check in zip(self.names, self.checks, strict=True) if check.exit_code]
        if not bad:
            return f"All {len(self.checks)} logs can be identified from."
        return f"{len(self.checks) - len(bad)} of {len(self.checks)} logs can be identified from; not {', '.join(bad)}."

    def to_json(self) -> dict[str, Any]:
        logs = [{"log": n, **check.to_json()} for n, check in zip(self.names, self.checks, strict=True)]
        return {"verdict": self.verdict, "exit_code": self.exit_code, "logs": logs}

    def files(self) -> Mapping[str, Content]:
        from steelyard.check.saved_checks import evidence_file

        return evidence_file(self.checks)

    def page(self) -> str:
        from steelyard.check.page import check_report

        return check_report(list(zip(self.names, self.checks, strict=True)), self.checks[0].robot)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.check.page import print_checks

        print_checks(self, out)


def join_checks(names: Sequence[str], checks: Sequence[Check]) -> Check | Checks:
    """Join the checks of several logs; a single check stays as it is.

    Args:
        names: Names of the logs.
        checks: Check of each log.
    """
    return checks[0] if len(checks) == 1 else Checks(tuple(names), tuple(checks))
