"""What the two integral schemes share: a balance summed over windows."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.regression.data import RegressionData
from steelyard.regression.schemes.balance import EnergyBalance, MomentumBalance, Quadrature, Rule
from steelyard.regression.schemes.band import band_rate
from steelyard.regression.schemes.scheme import Motions, first_of
from steelyard.regression.schemes.still import Stillness
from steelyard.regression.schemes.stream import stream
from steelyard.regression.schemes.window import Window, check_window, window_samples
from steelyard.signals.prepare import Motion


@dataclass(frozen=True)
class Windows:
    """Which windows: their length, whether they follow one another or slide, whether they grow."""

    window: float | None
    samples: int | None
    consecutive: bool
    growing: bool

    def __post_init__(self) -> None:
        check_window(self.window, self.samples)


def integrated(
    balance: MomentumBalance | EnergyBalance, motions: Motions, windows: Windows, rule: Rule, still: Stillness
) -> RegressionData:
    first = first_of(motions)
    given = windows.window is not None or windows.samples is not None
    period = first.filter.period
    default = 0.0 if given else 1.0 / (balance.reach * band_rate(first))
    count = window_samples(windows.window, windows.samples, default, period)

    def accumulator(motion: Motion) -> Window:
        # The same time, not the same number of samples, where logs differ in rate.
        own = max(1, round(count * period / motion.filter.period))
        every = own if windows.consecutive else motion.keep.step or 1
        return Window(own, every, windows.growing, motion.filter.period)

    start, stop, _ = first.keep.indices(len(first.t))
    too_long = (
        f"A window of {count * period:g} s fits into no stretch of the log in which a joint moves (the first piece is "
        f"{max(0, stop - start - 1) * period:.4g} s long); choose a shorter one."
    )
    row_period = count * period if windows.consecutive else first.row_period
    return stream(balance, motions, Quadrature(rule), accumulator, row_period, still, too_long)
