"""Comparison of the schemes: repeated experiments, with the spread of the results and the significance of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

import steelyard as sy
from steelyard.ground import Array
from steelyard.papers.paper import Item, PaperFigure, PaperTable, Statement, assertion, claim_result, holm, paper_table
from steelyard.papers.rotradi.lab import (
    PAPER_SCHEMES,
    SMOOTHING,
    Arm,
    Draw,
    Lab,
    clock,
    encode,
    identification_torque,
    play_torque,
    scheme_words,
    validation_torque,
)
from steelyard.parameters import Coulomb
from steelyard.report import Line, Panel, TableColumn

_FREE, _BASED = (
    ("filtered_dynamic", "supplied_energy", "filtered_power"),
    ("dynamic", "power"),
)  # of acceleration, on it
PRINTED = "(34) as printed"
# Dry friction near rest, where the regressors have only a sign: a ramp, a hyperbolic tangent of the same width, or
# true sticking.
_LAWS = {"ramp": "rises along a ramp", "tanh": "follows a tanh", "stick": "makes joints stick"}
_MOTIONS: dict[Draw, str] = {"run": "one phase a run", "sample": "one a sample"}
_SEEDS = 20
_LEVEL = 0.05
# Smallest number of pairs for a significant Wilcoxon test in a family of ten: 10 · 2/2¹⁰ is below 0.05.
_ENOUGH = 10
# Error of a diverged simulation, larger than that of all others [rad].
_LOST = 1e6
_PAIRS = tuple(combinations(PAPER_SCHEMES, 2))


@dataclass(frozen=True, eq=False)
class Runs:
    """Repeated experiments with one law of friction.

    Attributes:
        motions: Phases of each run: one per "run" or one per "sample".
        parameters: Median parameter error of each run, by scheme [%].
        positions: Summed position error of each run, by scheme [rad].
    """

    motions: tuple[Draw, ...]
    parameters: Mapping[str, Array]
    positions: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.motions)

    def of(self, errors: Mapping[str, Array], name: str, motion: Draw) -> Array:
        """Return the errors of a scheme in the runs with one kind of motion.

        Args:
            errors: Errors by scheme.
            name: Name of the scheme.
            motion: Kind of motion.
        """
        return np.asarray(errors[name][[m == motion for m in self.motions]])

    def better(self, a: str, b: str) -> int:
        """Count the runs in which scheme a has a smaller position error than b.

        Args:
            a: Name of a scheme.
            b: Name of another scheme.
        """
        return int(np.sum(self.positions[a] < self.positions[b]))

    @property
    def significance(self) -> dict[tuple[str, str], float]:
        """By pair of schemes: p of Wilcoxon's signed-rank test on the ratios of position errors, after Holm."""
        from scipy.stats import wilcoxon  # slow to import

        logs = {name: np.log(np.minimum(x, _LOST)) for name, x in self.positions.items()}
        return holm({(a, b): float(wilcoxon(logs[a], logs[b]).pvalue) for a, b in _PAIRS})

    @property
    def first(self) -> str:
        """Scheme with the smallest median position error."""
        return min(PAPER_SCHEMES, key=lambda name: float(np.median(self.positions[name])))

    def wins(self, name: str) -> bool | None:
        """Check whether scheme `name` is significantly better than every other; None: too few runs."""
        if len(self) < _ENOUGH:
            return None
        p = self.significance
        return self.first == name and all(x < _LEVEL for pair, x in p.items() if name in pair)


def ranking(lab: Lab) -> Item:
    """Which scheme is best: the experiment repeated."""
    runs = {law: _repeat_experiment(lab, law) for law in _LAWS}
    count = "; ".join(f"{law}: {len(x)}" for law, x in runs.items())
    few = " Fast mode has too few runs to rank the schemes." if lab.fast else ""
    return Item(
        text="Repeated experiments, with one phase per run or one per sample, since the text only calls the phase "
        "noisy; each run is evaluated by its positions under (40)–(42). The arm's dry friction rises along a smooth "
        "ramp that ends at 5 mrad/s, along a tanh of that width, or joints truly stick; the regressor has the sign of "
        f"the velocity in every case, as in the paper. Runs: {count}.{few}",
        tables=(
            _quartiles(runs, "positions", "Σ‖q error‖₂ [rad]: median (quartiles)"),
            _quartiles(runs, "parameters", "Median error of the 21 parameters [%]: median (quartiles)"),
            *(() if lab.fast else (_pairs(runs),)),
        ),
        figures=()
        if lab.fast
        else (PaperFigure("Position errors, in order", _quantiles(runs), "A scheme's runs from best to worst."),),
        statements=(_acceleration_free(runs), *_best(runs), *_correction(runs)),
        differences=(
            "Friction near rest decides which of the acceleration-free schemes is best: if joints stick, one of the "
            "energy schemes, since static friction does no work.",
        ),
    )


def _acceleration_free(runs: Mapping[str, Runs]) -> Statement:
    medians = {law: {n: float(np.median(x)) for n, x in many.parameters.items()} for law, many in runs.items()}
    pairs = {law: (max(m[n] for n in _FREE), min(m[n] for n in _BASED)) for law, m in medians.items()}
    return assertion(
        "Schemes that need no acceleration find better parameters than those that do.",
        all(free < based for free, based in pairs.values()),
        "; ".join(f"{law}: {a:.1f} % or less against {b:.1f} % or more" for law, (a, b) in pairs.items()) + ".",
    )


def _best(runs: Mapping[str, Runs]) -> list[Statement]:
    """Test the paper's conclusion for each law."""
    out, name = [], "filtered_dynamic"
    for law, many in runs.items():
        others = [n for n in PAPER_SCHEMES if n != name]
        rival = min(others, key=lambda n: float(np.median(many.positions[n])))
        pair = (name, rival) if (name, rival) in _PAIRS else (rival, name)
        p = f", p = {many.significance[pair]:.1g}" if len(many) >= _ENOUGH else ""
        out.append(
            claim_result(
                f"Filtered-dynamic is the best scheme, where friction {_LAWS[law]} (the paper's conclusion).",
                many.wins(name),
                f"Median {np.median(many.positions[name]):.1f} rad against {np.median(many.positions[rival]):.1f} rad "
                f"of {scheme_words(rival)}, the best of the others; better in {many.better(name, rival)} of "
                f"{len(many)} runs{p}.",
                "The regressor models dry friction by the sign of the velocity, which is wrong while joints creep or "
                "stick; an energy balance is not affected, since this friction does no work.",
            )
        )
    return out


def _correction(runs: Mapping[str, Runs]) -> list[Statement]:
    """Test the benefit of the corrected (34) on measured signals for each law."""
    out = []
    for law, many in runs.items():
        wins = int(np.sum(many.parameters["filtered_dynamic"] < many.parameters[PRINTED]))
        out.append(
            claim_result(
                f"On measured signals the corrected (34) is better than the printed one, where friction {_LAWS[law]}.",
                wins > 0.9 * len(many) if len(many) >= _ENOUGH else None,
                f"Better parameters in {wins} of {len(many)} runs.",
                "Wrong friction near rest hides the effect of the wrong products.",
            )
        )
    return out


def _quartiles(runs: Mapping[str, Runs], errors: str, title: str) -> PaperTable:
    """Return median and quartiles of every scheme, by law and motion."""
    columns = [(law, m) for law, many in runs.items() for m in dict.fromkeys(many.motions)]

    def cell(name: str, law: str, motion: Draw) -> str:
        low, middle, high = np.percentile(runs[law].of(getattr(runs[law], errors), name, motion), [25, 50, 75])
        return f"{middle:.1f} ({low:.1f}–{high:.1f})"

    rows = [(scheme_words(n), *(cell(n, *column) for column in columns)) for n in (*PAPER_SCHEMES, PRINTED)]
    return paper_table(("scheme", *(f"{law}, {_MOTIONS[motion]}" for law, motion in columns)), rows, title)


def _pairs(runs: Mapping[str, Runs]) -> PaperTable:
    """Return, for every pair of schemes, the share of runs in which the first is better, and its significance."""
    tests = {law: many.significance for law, many in runs.items()}
    heads = [x for law in runs for x in (TableColumn(f"{law}: first is better in", "%", 3), TableColumn("p", digits=2))]
    rows = []
    for a, b in _PAIRS:
        cells = [x for law, many in runs.items() for x in (100.0 * many.better(a, b) / len(many), tests[law][a, b])]
        rows.append((scheme_words(a), scheme_words(b), *cells))
    title = "Pairs of schemes by position error: Wilcoxon's signed-rank test, p after Holm for the ten of a column"
    return paper_table(("first", "second", *heads), rows, title)


def _quantiles(runs: Mapping[str, Runs]) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"friction {_LAWS[law]}",
            tuple(
                Line.of(scheme_words(n), (np.arange(len(many)) + 0.5) / len(many), np.sort(many.positions[n]))
                for n in PAPER_SCHEMES
            ),
            "share of the runs",
            "Σ‖q error‖₂ [rad]",
        )
        for law, many in runs.items()
    )


def _repeat_experiment(lab: Lab, law: str) -> Runs:
    """Repeat the experiment with several seeds and both kinds of phases."""
    play = _plant(lab, law)
    judge = play(validation_torque()).log()
    motions: Sequence[Draw] = ("run",) if lab.fast else tuple(_MOTIONS)
    seeds = range(1, 1 + ((1 if law == "stick" else 2) if lab.fast else _SEEDS))
    plan = [(seed, motion) for motion in motions for seed in seeds]
    errors = [_one_run(lab, encode(play(identification_torque(*one))), judge) for one in plan]
    parameters, positions = ({n: np.array([run[n][k] for run in errors]) for n in errors[0]} for k in (0, 1))
    return Runs(tuple(motion for _, motion in plan), parameters, positions)


def _plant(lab: Lab, law: str) -> partial[sy.Simulation]:
    """Return a function that simulates the arm with a law of friction under a torque."""
    if law == "stick":
        return partial(play_torque, lab.truth, t=clock(), friction="stick")
    arm = lab if law == "ramp" else Arm("viscous", Coulomb(smooth=SMOOTHING))
    return partial(play_torque, arm.truth, t=clock(), smoothing=SMOOTHING)


def _one_run(lab: Lab, log: sy.Log, judge: sy.Log) -> dict[str, tuple[float, float]]:
    """Return median parameter error [%] and summed position error [rad], by scheme."""
    estimates = {name: lab.fit(log, scheme) for name, scheme in PAPER_SCHEMES.items()}
    estimates[PRINTED] = lab.fit_by_34(log, "printed")
    out = {}
    for name, theta in estimates.items():
        error = lab.replay(theta, judge).position_error
        total = float("inf") if error is None else float(np.sum(error))
        out[name] = (float(np.median(lab.percent(theta))), total)
    return out
