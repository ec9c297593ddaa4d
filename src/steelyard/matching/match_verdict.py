"""`match_verdict`: judges whether a matched robot is accurate enough for a simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.ground.numbers import number
from steelyard.report import Verdict

if TYPE_CHECKING:
    from steelyard.matching.match_result import Match

# Largest rollout errors, as shares of the motion: a tenth is a usual tracking error of drives; with a third, the
# simulated motion differs clearly from the logs.
_GOOD, _FAIR = 0.1, 0.3


def error_shares(match: Match) -> list[float]:
    """Return the error of hold-out windows of each joint of a `match`, relative to its motion."""
    s = match.scores["hold-out"]
    return [float(x) for x in s.windows_rms / np.maximum(s.size, 1e-12)]


def match_verdict(match: Match) -> Verdict:
    """Judge a `match` by rollouts on the left-out motion."""
    names = match.robot.joint_names
    shares = error_shares(match)
    worst = int(np.argmax(shares))
    after, before = match.scores["hold-out"], match.scores["description"]
    total, stated = (float(np.sqrt(np.mean(s.windows_rms**2))) for s in (after, before))
    where = "Left-out motion" if match.test else "The motion of the fit itself (no motion was left out)"
    points = [
        f"{where}: rollouts of {number(after.window_s, 3)} s miss the positions by {number(1e3 * total, 3)} mrad or mm "
        f"(RMS), those of the description by {number(1e3 * stated, 3)}.",
        f"Joint '{names[worst]}' has the largest error, {number(100 * shares[worst], 2)} % of its motion.",
    ]
    for s in match.missed:
        assert s.missed_hz is not None
        points.append(
            f"The response of joint '{s.joint}' to its goal is wrong by {number(100 * s.missed, 2)} % at "
            f"{number(s.missed_hz, 3)} Hz: the model lacks an effect there, such as a resonance, play or a filter."
        )
    fit_worst = float(np.sqrt(np.mean(match.scores["fit"].windows_rms ** 2)))
    if match.test and total > 2.0 * fit_worst:
        points.append(
            f"The error is {number(total / fit_worst, 2)} times that of the fit: the left-out motion differs from the "
            "fitted one, for instance by its speed."
        )
    if match.fit.diverged[1]:
        points.append(f"{match.fit.diverged[1]} of {len(match.fit.windows)} windows diverge in simulation.")
    stays = match.at_description
    if stays:
        points.append(f"{len(stays)} numbers stay near the description, because the logs do not determine them.")
    points += list(match.remarks)
    if not match.fit.converged or shares[worst] > _FAIR or total > stated:
        headline = (
            "The search did not converge."
            if not match.fit.converged
            else "The matched robot does not move like the logs."
        )
        return Verdict("bad", headline, tuple(points))
    if shares[worst] > _GOOD or match.missed or match.fit.diverged[1]:
        return Verdict("warning", "The matched robot moves like the logs, with exceptions.", tuple(points))
    return Verdict("good", "The matched robot moves like the logs.", tuple(points))
