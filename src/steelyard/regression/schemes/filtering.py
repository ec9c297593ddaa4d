"""What the two filtered schemes share: a balance through a cascade of low-passes."""

from __future__ import annotations

from math import exp

from steelyard.errors import SteelyardError
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes.balance import EnergyBalance, MomentumBalance, Quadrature, Rule
from steelyard.regression.schemes.band import band_rate
from steelyard.regression.schemes.cascade import Cascade
from steelyard.regression.schemes.scheme import Motions, first_of
from steelyard.regression.schemes.still import Stillness
from steelyard.regression.schemes.stream import stream
from steelyard.signals.prepare import Motion


def filtered(
    balance: MomentumBalance | EnergyBalance,
    motions: Motions,
    cutoff: float | None,
    order: int,
    rule: Rule,
    still: Stillness,
) -> RegressionData:
    first = first_of(motions)
    rate = balance.reach * band_rate(first) if cutoff is None else cutoff
    x = rate * first.filter.period
    # f1(z) = λ(1 − z⁻¹)/(1 − a z⁻¹) takes every change as a jump at the sample: λ in place of (1 − a)/h.
    quadrature = Quadrature(rule, x / (1.0 - exp(-x)) if rule == "paper" else 1.0)

    def accumulator(motion: Motion) -> Cascade:
        return Cascade(rate, order, motion.filter.period, motion.keep.step or 1)

    none = "No joint moves fast enough for two samples in a row; lower `still`, or the mask."
    return stream(balance, motions, quadrature, accumulator, first.row_period, still, none)


def check_paper(rule: str, order: int) -> None:
    if rule == "paper" and order != 1:
        raise SteelyardError("The paper's filters f1(z), f2(z) are of order 1; choose 'held' for a higher order.")
