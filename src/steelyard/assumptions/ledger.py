"""`Ledger`: every assumption of a fit with what the logs say of it: refuted, confirmed, or not testable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from steelyard.assumptions.harm import HARM_PERCENT
from steelyard.assumptions.suspect import Suspect
from steelyard.ground.numbers import number

Answer = Literal["refuted", "confirmed", "not testable"]

# Probability that any of all suspects of a sound log is refuted (family-wise, by Holm 1979).
FALSE_REFUTATIONS = 0.02


@dataclass(frozen=True)
class Entry:
    """What the logs say of one assumption.

    Attributes:
        suspect: The assumption.
        answer: "refuted", "confirmed" (a value within the interval does no harm) or "not testable".
        estimate: Estimate of the number that is assumed to be zero; None where the parameters can take its place.
        standard_error: Its standard error, from block to block.
        interval: Interval that holds it with a probability of 95 %.
        p: Probability of an estimate as far from zero, if the assumption holds.
        share: Part of the column (of its square) that the parameters leave.
        gain_percent: By how many per cent the squared error on left-out blocks falls if it is fitted along.
        gain_doubt_percent: Standard error of that.
        judged_gain_percent: The same on the logs that judge, with the estimate; None: there are none.
        harm_percent: By how many per cent the torque error on the logs that judge is worse for the estimate.
        least_harm_percent: The same for the near end of the interval; where the logs that judge have the mistake as
            well, on logs like them.
        most_harm_percent: The same for its far end; infinite where there is no estimate.
        elsewhere_percent: The same for its near end, on logs of this robot without the mistake.
        sigmas: By how many of its standard errors the estimate moves the parameter that it moves most.
        most_sigmas: The same for the far end of the interval.
        rivals: Names of suspects that explain the same data as well.
    """

    suspect: Suspect
    answer: Answer
    estimate: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    p: float
    share: float
    gain_percent: float
    gain_doubt_percent: float
    judged_gain_percent: float | None
    harm_percent: float
    least_harm_percent: float
    most_harm_percent: float
    elsewhere_percent: float
    sigmas: float
    most_sigmas: float
    rivals: tuple[str, ...] = ()

    @property
    def harmful(self) -> bool:
        """Whether the assumption is refuted, and beyond doubt by so much that it matters."""
        return self.answer == "refuted" and not self.suspect.ambiguous and self.least_harm_percent > HARM_PERCENT

    @property
    def torques_rest_on_it(self) -> bool:
        """Whether a value within its interval does harm, but not every one."""
        return not self.harmful and self.most_harm_percent > HARM_PERCENT

    @property
    def sentence(self) -> str:
        """Value, cost and remedy of a refuted assumption."""
        if self.estimate is None:
            return f"{self.suspect.assumption} Not testable: {self.suspect.test}."
        return f"{self.evidence} {self.suspect.fix}"

    @property
    def evidence(self) -> str:
        """Value and cost of a refuted assumption; empty without an estimate."""
        s, unit = self.suspect, f" {self.suspect.unit}" if self.suspect.unit else ""
        if self.estimate is None or self.standard_error is None:
            return ""
        value = f"{self.estimate:+.3g} ± {number(1.96 * self.standard_error, 2)}{unit}"
        others = f" (or {', '.join(self.rivals)}, which explain the same)" if self.rivals else ""
        return f"{s.name}: {value}{others}; costs {number(self.harm_percent, 2)} % of the torque error."

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        s = self.suspect
        return {
            "kind": s.kind, "joint": s.joint, "other": s.other, "unit": s.unit, "assumption": s.assumption,
            "answer": self.answer, "estimate": self.estimate, "standard_error": self.standard_error,
            "interval_95": None if self.interval is None else list(self.interval), "p": self.p,
            "share_beside_the_parameters": self.share, "left_out_gain_percent": self.gain_percent,
            "left_out_gain_doubt_percent": self.gain_doubt_percent, "judged_gain_percent": self.judged_gain_percent,
            "harm_percent": self.harm_percent, "least_harm_percent": self.least_harm_percent,
            "most_harm_percent": self.most_harm_percent if np.isfinite(self.most_harm_percent) else None,
            "least_harm_elsewhere_percent": self.elsewhere_percent,
            "parameter_shift_in_standard_errors": self.sigmas,
            "most_parameter_shift_in_standard_errors": self.most_sigmas if np.isfinite(self.most_sigmas) else None,
            "rivals": list(self.rivals),
            "fix": s.fix, "would_test_it": s.test,
        }  # fmt: skip


@dataclass(frozen=True)
class Ledger:
    """All assumptions of a fit.

    Attributes:
        entries: One for each suspect.
        blocks: Blocks of time that error bars are made of.
        rows: Rows of an equation that were looked at.
    """

    why_null: ClassVar = {
        **dict.fromkeys(("estimate", "standard_error", "interval_95"), "The parameters can take its place."),
        **dict.fromkeys(
            ("most_harm_percent", "most_parameter_shift_in_standard_errors"), "There is no estimate, and so no limit."
        ),
        "judged_gain_percent": "No log judges.",
    }
    entries: tuple[Entry, ...]
    blocks: int
    rows: int

    def of(self, answer: Answer) -> tuple[Entry, ...]:
        """List the entries with an answer.

        Args:
            answer: "refuted", "confirmed" or "not testable".
        """
        return tuple(e for e in self.entries if e.answer == answer)

    @property
    def refuted(self) -> tuple[Entry, ...]:
        """The refuted ones, those that cost most first."""
        return tuple(sorted(self.of("refuted"), key=lambda e: -e.harm_percent))

    @property
    def conditions(self) -> tuple[Entry, ...]:
        """What predicted torques rest on, and these logs cannot show."""
        return tuple(e for e in self.entries if e.torques_rest_on_it)

    @property
    def parameter_conditions(self) -> tuple[Entry, ...]:
        """What parameters alone rest on: torques are predicted as well without."""
        return tuple(e for e in self.of("not testable") if not e.torques_rest_on_it)

    @property
    def summary(self) -> str:
        """One line: what is confirmed, and what is not testable."""
        parts = {"confirmed": self.of("confirmed"), "not testable": self.conditions}
        out = [f"{words}: {self.named(some)}" for words, some in parts.items() if some]
        if self.parameter_conditions:
            families = dict.fromkeys(e.suspect.family for e in self.parameter_conditions)
            out.append(f"not testable, where parameters alone matter: some {', '.join(families)}")
        return " · ".join(out)

    def named(self, entries: Sequence[Entry]) -> str:
        """Name assumptions in few words: each family once, with its joints where it is not all of it.

        Args:
            entries: Some of the entries.
        """
        families: dict[str, list[Entry]] = {}
        for e in entries:
            families.setdefault(e.suspect.family, []).append(e)
        parts = []
        for family, some in families.items():
            whole = len(some) == sum(e.suspect.family == family for e in self.entries)
            joints = list(dict.fromkeys(e.suspect.joint or e.suspect.whole for e in some))
            parts.append(family if whole else f"{family} ({', '.join(joints)})")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "false_refutations": FALSE_REFUTATIONS,
            "harm_percent": HARM_PERCENT,
            "blocks": self.blocks,
            "rows": self.rows,
            "entries": [e.to_json() for e in self.entries],
        }
