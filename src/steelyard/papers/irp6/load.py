"""Table I and Figures 10–14: a payload identified by a wrist sensor."""

from __future__ import annotations

from functools import cached_property

import numpy as np

import steelyard as sy
from steelyard.dynamics import FrameKinematics
from steelyard.ground import Array, number
from steelyard.papers.irp6._lab import Lab, SampledMotion, via
from steelyard.papers.paper import (
    Item,
    PaperFigure,
    Statement,
    assertion,
    claim_result,
    paired_columns,
    paper_table,
    printed_table,
)
from steelyard.payload import (
    Payload,
    RepeatStatistics,
    SensorModel,
    cuboid,
    excite_payload,
    identify_payload_by_sensor,
    repeats,
    wrench_regressor,
)
from steelyard.report import Line, Panel, TableColumn

TABLE1 = printed_table("irp6", "table1")
# The paper lists Ixx, Ixy, Ixz, Iyy, Iyz, Izz; a link here has Ixx, Ixy, Iyy, Ixz, Iyz, Izz. This maps both ways.
ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
REPEATS = 30
NOISE = np.array([0.3, 0.3, 0.3, 0.02, 0.02, 0.02])  # N and N m, usual for such a sensor; the paper states none
# No body has the printed "computed" values; this cuboid has their mass and centre.
BODY = cuboid(1.91, np.array([0.10, 0.06, 0.04]), np.array([0.03, -0.011, 0.073]))
ENDS = np.deg2rad([[-40.0, 10.0, -30.0, 30.0, -150.0], [30.0, -20.0, 40.0, -10.0, -10.0]])
FAST, SLOW = 1.83, 10.0  # s
STEP, POINTS = 0.032, 200  # of the printed start
# The printed start in degrees: offset, then sines and cosines (size, phase in π, multiple of α).
START: tuple[tuple[float, list[tuple[float, float, float]], list[tuple[float, float, float]]], ...] = (
    (12.0, [(0.8, 0.1, 0.8)], [(-0.7, 0.4, 1.7)]),
    (4.0, [], [(1.8, 0.4, 1.7), (1.3, 0.1, 0.3)]),
    (8.0, [(0.4, 0.4, 0.4), (0.7, 0.8, 0.6)], [(1.0, 0.45, 1.4)]),
    (13.0, [(-1.2, 0.45, 1.7)], [(1.8, 0.15, 0.7)]),
    (-9.0, [(1.1, 0.45, 0.2)], [(2.6, 0.15, 2.0)]),
)


class _Wrist:
    """The arm with its wrist, a sensor on it, and the cuboid on the sensor."""

    @cached_property
    def robot(self) -> sy.Robot:
        return sy.load_robot("irp6-wrist")

    @cached_property
    def motion(self) -> FrameKinematics:
        return FrameKinematics(self.robot, self.robot.frame())

    def K(self, motion: SampledMotion) -> Array:
        return wrench_regressor(self.motion(*motion))

    def condition(self, motion: SampledMotion) -> float:
        """Compute cond₂(KᵀK)."""
        return float(np.linalg.cond(self.K(motion).reshape(-1, 10)) ** 2)

    def weigh(self, seconds: float, seed: int, model: SensorModel, drift: float = 0.0) -> Payload:
        """Identify the load from the printed move at 250 Hz with noise; `drift` is in units of the noise."""
        rng, period = np.random.default_rng(seed), 0.004
        motion = via(ENDS, seconds, period)
        t = period * np.arange(len(motion[0]))
        wrench = self.K(motion) @ BODY + NOISE * (rng.normal(size=(len(t), 6)) + drift * t[:, None] / seconds)
        q = motion[0] + 2e-5 * rng.normal(size=motion[0].shape)
        log = sy.Log(self.robot.joint_names, np.asarray(t), q, channels={"wrench": wrench})
        # A single short move is too short to determine the cut-off.
        preparation = sy.Preparation(cutoff_hz=15.0, velocity="differentiated")
        return identify_payload_by_sensor(self.robot, log, model=model, physical=False, preparation=preparation)

    def weigh_repeatedly(self, seconds: float, count: int) -> RepeatStatistics:
        return repeats([self.weigh(seconds, k, SensorModel(bias=False)) for k in range(count)])

    def expected(self) -> Array:
        """Return standard deviations as in the paper: 58 samples, all rows with equal weights."""
        K = self.K(via(ENDS, FAST, STEP)).reshape(-1, 10)
        weight = np.linalg.pinv(K) * np.tile(NOISE, len(K) // 6)
        return np.asarray(np.linalg.norm(weight, axis=1))


WRIST = _Wrist()


def table_1(lab: Lab) -> Item:
    """Table I: a load of 1.91 kg, weighed 30 times."""
    count = 10 if lab.fast else REPEATS
    fast, slow, true = WRIST.weigh_repeatedly(FAST, count), WRIST.weigh_repeatedly(SLOW, count), BODY
    names, units = TABLE1.words("parameter"), TABLE1.words("unit")
    paper = {key: TABLE1.numbers(key) for key in ("computed", "estimated", "std", "ci")}
    ours = (true, fast.mean, fast.std, fast.interval_as_printed(), fast.interval())
    columns = [x for k, key in enumerate(paper) for x in (paper[key], ours[k][ORDER])]
    pairs = [c for name in ("computed", "estimated", "deviation", "99 % interval") for c in paired_columns(name)]
    head = ("parameter", "unit", *pairs, TableColumn("interval by Student's t"))
    rows = zip(names, units, *columns, ours[4][ORDER], strict=True)
    percent, slowly, plain = (100.0 * x / np.abs(true) for x in (fast.std, slow.std, WRIST.expected()))
    covered = int(np.sum(np.abs(fast.mean - true) <= fast.interval()))
    return Item(
        text=f"The printed move of 1.83 s, quintic, from rest to rest, {count} times; a real cuboid replaces "
        "the printed values. Intervals are as printed, z/√(n − 1), and by Student's t.",
        tables=(
            paper_table(head, rows),
            paper_table(("parameter", *(TableColumn(x, "%", 3) for x in ("58 samples, plain", "1.83 s", "10 s"))),
                  zip(names, *(x[ORDER] for x in (plain, percent, slowly)), strict=True),
                  "Our deviations in percent of the value; first with 58 samples and plain least squares"),
        ),
        statements=(
            *_printed_table(paper),
            assertion(
                "Mass has the smallest errors, then first moments, then inertias.",
                percent[0] < np.median(percent[1:4]) < np.median(percent[4:]),
                f"Deviations of {number(percent[0], 2)} %, {_percent_range(percent[1:4])} and "
                f"{_percent_range(percent[4:])} of the value.",
            ),
            claim_result(
                "The true values are in the 99 % intervals of the mean.",
                covered == 10,
                f"{covered} of 10 with a sensor with random errors only; in print 6 of 10 computed values are.",
            ),
            claim_result(
                "One move of 1.83 s determines all ten parameters.",
                np.all(percent < 30.0),
                "With noise of 0.3 N and 0.02 N m one repeat leaves the inertias uncertain by "
                f"{_percent_range(percent[4:])}, and by {_percent_range(plain[4:])} with the paper's 58 samples and "
                "plain least squares.",
                "Angular accelerations are too small: the torques of such a small body are hardly above the sensor's "
                "noise; thirty repeats, or a better sensor, are needed.",
            ),
            assertion(
                "Slow motion is good for mass and first moments and useless for inertias.",
                np.all(slowly[:4] < percent[:4]) and np.all(slowly[4:] > percent[4:]) and np.median(slowly[4:]) > 100.0,
                f"In 10 s {_percent_range(slowly[:4])} and {_percent_range(slowly[4:])}.",
            ),
        ),
        differences=(
            "Inertias of the cuboid are not those in print, which no body has; deviations in kg m² are comparable.",
            "Our rows have 250 Hz and are filtered at 15 Hz; the paper has 58 samples 32 ms apart.",
        ),
    )  # fmt: skip


def _printed_table(paper: dict[str, Array]) -> tuple[Statement, ...]:
    """Check the consistency of the printed numbers."""
    # z = 2.576 over √29; printed numbers are rounded, so both sides are intervals.
    low, high = (2.576 / np.sqrt(29.0) * TABLE1.numbers(f"std_{x}") for x in ("lo", "hi"))
    fits = (low <= TABLE1.numbers("ci_hi")) & (high >= TABLE1.numbers("ci_lo"))
    inside = np.abs(paper["computed"] - paper["estimated"]) <= paper["ci"]
    sets = [Payload("sensor", paper[key][ORDER], np.zeros((10, 10))) for key in ("computed", "estimated")]
    return (
        assertion("The printed intervals are z/√(n − 1) of the printed deviations, n = 30.", fits.all(),
                 f"{fits.sum()} of 10 rows within rounding."),
        claim_result("The printed computed values are in the printed 99 % intervals.", inside.all(),
              f"{inside.sum()} of 10 are.",
              "Intervals of a mean ignore systematic errors, and no body has the computed values."),
        assertion("No body has the printed values.", not any(x.possible for x in sets),
                 "Neither the computed nor the estimated set is physically possible."),
    )  # fmt: skip


def figures_10_to_14(lab: Lab) -> Item:
    """Figures 10–14: start and optimal motions for the load."""
    t = STEP * np.arange(POINTS)
    start, move = start_motion(), via(ENDS, FAST, STEP)
    plan = excite_payload(
        WRIST.robot, duration=POINTS * STEP, rate=1.0 / STEP, criterion="information", search=lab.search,
        family=lab.samples(POINTS * STEP),
    )  # fmt: skip
    best = plan.trajectory.sample(t)
    before, after = WRIST.condition(start), WRIST.condition(best)
    radians = tuple(x * 180.0 / np.pi for x in start)
    panels = [
        Panel(f"joint {k + 1}", (Line.of("start", t, start[0][:, k]), Line.of("optimal", t, best[0][:, k])), y="[rad]")
        for k in range(5)
    ]
    rows = [("start, read as degrees", 90830.0, before), ("optimal", 3000.0, after), ("best start found", 181.0, None),
            ("the move of Table I", None, WRIST.condition(move)),
            ("start, read as radians", None, WRIST.condition((radians[0], radians[1], radians[2])))]  # fmt: skip
    return Item(
        text="200 points, 32 ms apart. The optimum has free samples of acceleration, as in the paper, within the "
        "limits of the arm, and begins and ends at rest.",
        tables=(paper_table(("motion", *paired_columns("cond₂(KᵀK)", digits=3)), rows),),
        figures=(PaperFigure("Start and optimal motions", tuple(panels)),),
        statements=(
            assertion(
                "Optimisation lowers the condition number at least as far as in the paper, to 3000.",
                after < 3000.0 and plan.violation == 0.0,
                f"{number(before, 2)} to {number(after, 2)}; the paper's best start had 181.",
            ),
        ),
        differences=(
            "The paper states no unit for the start of the search. In degrees its condition number has the printed "
            "order of magnitude; in radians the joint angles would reach 700°.",
            "The lengths of the wrist are not printed, so the number itself cannot be reproduced.",
            "The paper's search took 60 hours on a computer of its time; ours takes seconds with exact gradients.",
        ),
    )


def forms(lab: Lab) -> Item:
    """Section 3: differential and integral models of the load."""
    ways = {
        "differential": SensorModel(bias=False),
        "integral, windows of 0.1 s": SensorModel("integral", 0.1, bias=False),
        "integral, growing window": SensorModel("integral", None, bias=False),
    }
    scale = np.array([BODY[0], *[np.linalg.norm(BODY[1:4])] * 3, *[np.abs(BODY[[4, 6, 9]]).max()] * 6])
    rows, inertias = [], []
    for drift in (0.0, 3.0):
        for name, model in ways.items():
            loads = [WRIST.weigh(FAST, k, model, drift).parameters for k in range(3 if lab.fast else REPEATS)]
            wrong = ((np.array(loads) - BODY) / scale) ** 2
            parts = [100.0 * float(np.sqrt(np.mean(wrong[:, p]))) for p in (slice(0, 1), slice(1, 4), slice(4, 10))]
            rows.append((name, drift, *parts))
            inertias.append(parts[2])
    head = (
        "model",
        TableColumn("drift", "× noise", 2),
        *(TableColumn(x, "%", 3) for x in ("mass", "first moments", "inertias")),
    )
    plain, short, growing = inertias[3:]  # with drift
    return Item(
        text="Root mean square errors on the move of Table I, of a sensor without and one with drift.",
        tables=(paper_table(head, rows),),
        statements=(
            claim_result(
                "With drift the integral model of the load is worse than the differential one, over a growing window.",
                growing > plain,
                f"Errors of the inertias: {plain:.0f} % (differential) and {growing:.0f} % (growing window).",
            ),
            claim_result(
                "With drift the integral model of the load is worse than the differential one, over windows of 0.1 s.",
                short > plain,
                f"Inertias err by {plain:.0f} % (differential) and {short:.0f} % (short windows).",
                "The drift within a window of 0.1 s is small, and its mean has less noise than a sample.",
            ),
        ),
    )


def start_motion() -> SampledMotion:
    """Return the printed start motion of the search, in radians."""
    i = np.arange(POINTS)
    alpha, rate = 2.0 * np.pi * (i / POINTS - 1.0), 2.0 * np.pi / (POINTS * STEP)
    signals = []
    for order in range(3):
        turn = 0.5 * np.pi * order  # a derivative shifts the phase by a quarter turn
        columns = []
        for offset, sines, cosines in START:
            waves = [size * (m * rate) ** order * np.sin(p * np.pi + m * alpha + turn) for size, p, m in sines]
            waves += [size * (m * rate) ** order * np.cos(p * np.pi + m * alpha + turn) for size, p, m in cosines]
            columns.append(np.sum(waves, axis=0) + (offset if order == 0 else 0.0))
        signals.append(np.deg2rad(np.stack(columns, axis=1)))
    return signals[0], signals[1], signals[2]


def _percent_range(percent: Array) -> str:
    low, high = (f"{x:.0f}" if x >= 10.0 else f"{number(x, 2)}" for x in (percent.min(), percent.max()))
    return f"{low}–{high} %"
