"""`Ledger`: every assumption of a fit with its test result: refuted, confirmed or not testable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from steelyard.assumptions.harm import HARM_PERCENT
from steelyard.assumptions.suspect import Suspect
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import number
from steelyard.ground.short_repr import short_repr

Answer = Literal["refuted", "confirmed", "not testable"]

# Family-wise probability of a false refutation for a correct log (Holm 1979).
FALSE_REFUTATIONS = 0.02
# Error on left-out blocks of one fit to all joints, over that of a fit to one of them. At 2, three quarters of the
# squares come from the contradiction.
CONTRADICTION = 2.0


@short_repr
@dataclass(frozen=True)
class Entry:
    """Test result of one assumption.

    Attributes:
        suspect: The assumption.
        answer: "refuted", "confirmed" (no value within the interval is harmful) or "not testable".
        estimate: Estimate of the number that is assumed to be zero; None if it is not identifiable together with the
            parameters.
        standard_error: Its standard error, from the variation between blocks.
        interval: 95 % interval.
        p: p-value of the assumption.
        share: Share of the squared column that the parameters cannot explain.
        gain_percent: Reduction of the cross-validation error (squared) if the number is fitted [%].
        gain_doubt_percent: Standard error of `gain_percent`.
        judged_gain_percent: Reduction on the validation logs; None without such logs.
        harm_percent: Growth of the torque error on the validation logs due to the estimate [%].
        least_harm_percent: The same for the near end of the interval. If the validation logs have the mistake as well,
            it applies to logs like them.
        most_harm_percent: The same for the far end; infinite without an estimate.
        elsewhere_percent: The same for the near end, on logs of this robot without the mistake.
        sigmas: Largest shift of a parameter due to the estimate, in its standard errors.
        most_sigmas: The same for the far end of the interval.
        rivals: Names of suspects that explain the data equally well.
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
        """Whether the assumption is refuted and every value within its interval is harmful."""
        return self.answer == "refuted" and not self.suspect.ambiguous and self.least_harm_percent > HARM_PERCENT

    @property
    def torques_rest_on_it(self) -> bool:
        """Whether some values within its interval are harmful, but not all."""
        return not self.harmful and self.most_harm_percent > HARM_PERCENT

    @property
    def sentence(self) -> str:
        """Estimate, cost and remedy of a refuted assumption."""
        if self.estimate is None:
            return f"{self.suspect.assumption} Not testable with these logs. To test it: {self.suspect.test}."
        return f"{self.evidence} {self.suspect.fix}"

    @property
    def value(self) -> str:
        """Name, estimate and 95 % interval; the name alone without an estimate."""
        s, unit = self.suspect, f" {self.suspect.unit}" if self.suspect.unit else ""
        if self.estimate is None or self.standard_error is None:
            return s.name
        return f"{s.name}: {self.estimate:+.3g} ± {number(HALF_WIDTH_95 * self.standard_error, 2)}{unit}"

    @property
    def evidence(self) -> str:
        """Estimate and cost of a refuted assumption; empty without an estimate."""
        if self.estimate is None:
            return ""
        others = f" (or {', '.join(self.rivals)}, which fit equally well)" if self.rivals else ""
        return f"{self.value}{others}; increases the torque error by {number(self.harm_percent, 2)} %."

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values."""
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


@short_repr
@dataclass(frozen=True)
class Ledger:
    """All assumptions of a fit.

    Attributes:
        entries: One for each suspect.
        blocks: Number of blocks for the error bars.
        rows: Number of rows used per equation.
        contradictions: Joints whose torque one fit to all joints predicts much worse than a fit to the joint alone,
            with the ratio of these errors on left-out blocks. Refuted assumptions are corrected before.
    """

    why_null: ClassVar = {
        **dict.fromkeys(
            ("estimate", "standard_error", "interval_95"), "It is not identifiable together with the parameters."
        ),
        **dict.fromkeys(
            ("most_harm_percent", "most_parameter_shift_in_standard_errors"), "Without an estimate there is no limit."
        ),
        "judged_gain_percent": "There are no validation logs.",
    }
    entries: tuple[Entry, ...]
    blocks: int
    rows: int
    contradictions: Mapping[str, float] = field(default_factory=dict)

    def of(self, answer: Answer) -> tuple[Entry, ...]:
        """Return the entries with an answer.

        Args:
            answer: "refuted", "confirmed" or "not testable".
        """
        return tuple(e for e in self.entries if e.answer == answer)

    @property
    def refuted(self) -> tuple[Entry, ...]:
        """Refuted assumptions, the most harmful first."""
        return tuple(sorted(self.of("refuted"), key=lambda e: -e.harm_percent))

    @property
    def conditions(self) -> tuple[Entry, ...]:
        """Assumptions that predicted torques depend on and these logs cannot test."""
        return tuple(e for e in self.of("not testable") if e.torques_rest_on_it)

    @property
    def parameter_conditions(self) -> tuple[Entry, ...]:
        """Untested assumptions that affect parameters only, not predicted torques."""
        return tuple(e for e in self.of("not testable") if not e.torques_rest_on_it)

    @property
    def contradicting(self) -> str:
        """Joint that contradicts the others most; "" if none does, or if a harmful refuted assumption explains it."""
        if not self.contradictions or any(e.harmful for e in self.refuted):
            return ""
        return max(self.contradictions, key=lambda joint: self.contradictions[joint])

    @property
    def contradiction(self) -> str:
        """Sentences about this joint, with the remedy; "" without one."""
        if not (worst := self.contradicting):
            return ""
        return (
            f"The joints contradict one another: one fit to all of them predicts the torque of '{worst}' "
            f"{self.contradictions[worst]:.1f} times worse than a fit to this joint alone. Check zero, sign, scale and "
            f"unit of '{worst}' and its neighbors, and whether a spring acts there."
        )

    @property
    def summary(self) -> str:
        """One line with the confirmed and the untestable assumptions."""
        parts = {"confirmed": self.of("confirmed"), "not testable": self.conditions}
        out = [f"{words}: {self.named(some)}" for words, some in parts.items() if some]
        if self.parameter_conditions:
            families = dict.fromkeys(e.suspect.family for e in self.parameter_conditions)
            out.append(f"not testable, with an effect on parameters only: some {', '.join(families)}")
        return " · ".join(out)

    def named(self, entries: Sequence[Entry]) -> str:
        """List assumptions by family, with the joints if the family is not complete.

        If a number is listed, its change over time is not listed again.

        Args:
            entries: Some of the entries.
        """
        implied = {(s.change.kind, s.joint) for s in (e.suspect for e in entries) if s.change is not None}
        families: dict[str, list[Entry]] = {}
        for e in entries:
            if (e.suspect.kind, e.suspect.joint) not in implied:
                families.setdefault(e.suspect.family, []).append(e)
        parts = []
        for family, some in families.items():
            every = dict.fromkeys(_label(e) for e in self.entries if e.suspect.family == family)
            named = dict.fromkeys(map(_label, some))
            others = [label for label in every if label not in named]
            text = ", ".join(named) if len(named) <= len(others) + 1 else f"all but {', '.join(others)}"
            parts.append(f"{family} ({text})" if others else family)
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values."""
        return {
            "false_refutations": FALSE_REFUTATIONS,
            "harm_percent": HARM_PERCENT,
            "blocks": self.blocks,
            "rows": self.rows,
            "conditions": [e.suspect.name for e in self.conditions],
            "parameter_conditions": [e.suspect.name for e in self.parameter_conditions],
            "contradictions": dict(self.contradictions),
            "entries": [e.to_json() for e in self.entries],
        }


def _label(entry: Entry) -> str:
    return entry.suspect.joint or entry.suspect.whole
