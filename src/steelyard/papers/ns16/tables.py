"""Table II, what its numbers can and cannot be; the fitness of (6) and (7), conditioning in small boxes, Figure 3."""

from __future__ import annotations

import re

import numpy as np

import steelyard as sy
from steelyard.excitation import Genetic
from steelyard.ground import Array, evaluate_expression
from steelyard.local import JointRegion, MotionLike, evolved_plan, home_posture, random_motion
from steelyard.papers.ns16._lab import Lab
from steelyard.papers.own_parameters import OwnParameters
from steelyard.papers.paper import Item, PaperFigure, asserted, measured, paper_table, printed, shown
from steelyard.report import Line, Panel, TableColumn

# Rows 23 to 40 with the coefficients that the printed decimals stand for.
COMBINED = {
    23: "Iyy1 + Ia1 + a1**2*m2 + Iyy2 + (a1**2 + a2**2)*m3 + Izz3 + (a1**2 + a2**2 + a3**2)*(m4 + m5 + m6)",
    24: "mx2 + a2*(m3 + m4 + m5 + m6)",
    25: "Ixx2 - Iyy2 - a2**2*(m3 + m4 + m5 + m6)",
    26: "Ixz2 + a2*my3",
    27: "Izz2 + Ia2 + a2**2*(m3 + m4 + m5 + m6)",
    28: "mx3 + a3*(m4 + m5 + m6)",
    29: "mz3 + my4 + d4*(m5 + m6)",
    30: "Ixx3 - Izz3 - a3**2*m4 + Izz4 + (d4**2 - a3**2)*(m5 + m6)",
    31: "Ixz3 - a3*my4 - a3*d4*(m5 + m6)",
    32: "Iyy3 + a3**2*m4 + Izz4 + (a3**2 + d4**2)*(m5 + m6)",
    33: "mz4 - my5",
    34: "Ixx4 - Izz4 + Izz5",
    35: "Iyy4 + Izz5",
    36: "Iyz4 + d4*my5",
    37: "mz5 + mz6",
    38: "Ixx5 - Izz5 + Iyy6",
    39: "Iyy5 + Iyy6",
    40: "Ixx6 - Iyy6",
}


def formulas() -> dict[str, str]:
    """All 40 rows in our names."""
    out = {}
    for row, text in enumerate(printed("ns16", "table2").words("expression")[:40], start=1):
        out[str(row)] = COMBINED.get(row) or _ours(text)
    return out


def _ours(text: str) -> str:
    """mc2y → my2, I2xy → Ixy2, I3m → Ia3."""
    text = re.sub(r"mc(\d)([xyz])", r"m\2\1", text)
    text = re.sub(r"I(\d)m", r"Ia\1", text)
    return re.sub(r"I(\d)([xyz]{2})", r"I\2\1", text)


def _printed_coefficients(text: str) -> dict[str, float]:
    """The coefficients of a printed row by parameter, in our names."""
    signed = re.findall(r"([+-]?)\s*(?:(\d\.\d+)\s+)?([A-Za-z]\w*)", text)
    return {_ours(name): (-1.0 if sign == "-" else 1.0) * float(size or 1.0) for sign, size, name in signed}


def table_2(lab: Lab) -> Item:
    """Table II: the parameters and their combinations, regenerated from the geometry."""
    robot = lab.robot
    ranks = [sy.base_parameters(robot).rank, sy.base_parameters(robot, sy.terms(robot, "rotor")).rank, lab.base.rank]
    own = OwnParameters.of(formulas(), sy.base_parameters(robot, sy.terms(robot, "rotor")))
    texts = printed("ns16", "table2").words("expression")[:40]
    names = [p.name for p in own.base.parameters]
    rows, worst = [], 0.0
    for row, (text, exact) in enumerate(zip(texts, own.formulas.values(), strict=True), start=1):
        ours = dict(zip(names, own.matrix[row - 1], strict=True))
        off = max((abs(v - ours[n]) for n, v in _printed_coefficients(text).items()), default=0.0)
        missing = {n for n, v in ours.items() if v} ^ set(_printed_coefficients(text))
        worst = max(worst, off if not missing else 1.0)
        value = evaluate_expression(exact, {**dict.fromkeys(names, 0.0), **_true(lab)})[0]
        rows.append((row, text, exact, off, value))
    return Item(
        text="Every row is written with the robot's lengths and must be a combination that the motion shows; together "
        "they must be all there are. Link frames have the orientation of frame i and their origin on axis i.",
        tables=(
            paper_table(
                (
                    "row",
                    "as printed",
                    "from the geometry",
                    TableColumn("difference", digits=2),
                    TableColumn("value here"),
                ),
                rows,
            ),
        ),
        statements=(
            asserted("Ranks: 36 for the links, 40 with rotors, 58 with friction.", ranks == [36, 40, 58], f"{ranks}."),
            asserted(
                "The 40 rows are an exact regrouping: each can be found from the motion, and they are independent.",
                own.rank == 40,
                f"Rank {own.rank}; every row regroups to 1e-9.",
            ),
            asserted(
                "Printed coefficients are ours with three decimals cut off, not rounded.",
                5e-4 < worst < 1e-3,
                f"Largest difference {worst:.1e}.",
            ),
        ),
        differences=(
            "Row 10 has lost its label in print; it must be the rotor of joint 4, or the rank would be 39.",
            "“40 parameters for a 6-dof manipulator” holds with independent rotors on joints 3 to 6 only.",
        ),
    )


def _true(lab: Lab) -> dict[str, float]:
    named = {p.name: float(v) for p, v in zip(lab.base.parameters, lab.truth.theta, strict=True)}
    return {**named, **{k: float(v) for k, v in lab.robot.lengths.items()}}


def printed_values(_: Lab) -> Item:
    """Table II: the printed values as bodies."""
    rows = printed("ns16", "table2")
    values = {x: rows.numbers(x)[:40] for x in "ABC"}
    which = {6: "I3m", 21: "I6zz", 23: "inertia about axis 1", 35: "I4yy + I5zz", 39: "I5yy + I6yy"}
    shown = [(row, name, *(values[x][row - 1] for x in "ABC")) for row, name in which.items()]
    negative = {x: [row for row in which if values[x][row - 1] < 0.0] for x in "ABC"}
    largest = [float(np.max(np.abs(values[x]))) for x in "ABC"]
    return Item(
        text="Moments of inertia and of rotors are positive, and so are sums of them.",
        tables=(paper_table(("row", "what", "A", "B", "C"), shown),),
        statements=(
            asserted(
                "None of the three printed sets is physically possible.",
                all(negative.values()),
                "; ".join(f"{x}: rows {', '.join(map(str, r))} are negative" for x, r in negative.items()) + ".",
            ),
            measured("How far apart the sets are.", f"Largest values {', '.join(f'{s:.0f}' for s in largest)}."),
        ),
        differences=("They are no truth to simulate with; the simulated arm has its own, possible bodies.",),
    )


def friction_labels(lab: Lab) -> Item:
    """Table II, rows 41–58: whose friction it is."""
    rows = printed("ns16", "table2")
    shares = {x: rows.numbers(x)[40:52] for x in "ABC"}
    read = {
        "as labelled (rows 41–46)": np.array([shares[x][:6] for x in "ABC"]),
        "every other row (41, 43, … 51)": np.array([shares[x][::2] for x in "ABC"]),
    }
    percent = {name: 100.0 * values / lab.nominal for name, values in read.items()}
    cells = [(name, *(f"{p[:, k].min():.1f} … {p[:, k].max():.1f}" for k in range(6))) for name, p in percent.items()]
    wide, narrow = (float(p.max() / p.min()) for p in percent.values())
    return Item(
        text="Coulomb friction of geared joints is some percent of their nominal torque, on all joints alike.",
        tables=(
            paper_table(
                ("reading", *(f"f0 of joint {k} [% of nominal]" for k in range(1, 7))), cells, "Range over A, B, C"
            ),
        ),
        statements=(
            asserted(
                "Read as labelled, joint 5 rubs with most of its nominal torque and joint 2 hardly at all; read as "
                "interleaved, all joints lie between 3 and 22 %.",
                wide > 300.0 and narrow < 8.0,
                f"Largest over smallest: {wide:.0f} as labelled, {narrow:.1f} interleaved.",
            ),
        ),
        differences=("The labels are most probably interleaved; this is an inference from plausibility.",),
    )


_RATE = 50.0


def _rows(lab: Lab, motion: MotionLike) -> Array:
    """Base columns of the torque rows, `(samples, joints, 58)`."""
    t = np.arange(0.0, motion.duration, 1.0 / _RATE)
    return lab.base.regressor_columns(lab.base.structure.dynamics.torque_regressor(*motion.sample(t)))


def _fitness(W: Array, weights: Array) -> float:
    H = (W * weights[None, :, None]).reshape(-1, W.shape[-1])
    return float(np.linalg.slogdet(H.T @ H)[1] / np.log(10.0))


def fitness(lab: Lab) -> Item:
    """Equations (6) and (7): the torque-scaled regressor and its determinant."""
    from scipy.stats import spearmanr

    share = lab.nominal / lab.nominal.max()
    motions = [m for some in lab.trials.values() for m in some]
    W = [_rows(lab, m) for m in motions]
    as_printed, as_meant = (np.array([_fitness(w, d) for w in W]) for d in (share, 1.0 / share))
    rank = float(spearmanr(as_printed, as_meant).statistic)
    step = _fitness(W[0], 10.0 * share) - _fitness(W[0], share)
    return Item(
        text="(6) multiplies joint j's rows by τnom_j/τmax, which weighs the wrist down although the text wants the "
        "actuators alike; dividing would do that, and is D-optimal for noise in proportion to the nominal torque.",
        tables=(
            paper_table(
                ("scaling", TableColumn("lowest"), TableColumn("median"), TableColumn("highest")),
                [
                    (name, float(x.min()), float(np.median(x)), float(x.max()))
                    for name, x in (("τnom/τmax, as printed", as_printed), ("τmax/τnom", as_meant))
                ],
                f"log10 det(HᵀH) of {len(W)} random programs",
            ),
        ),
        statements=(
            asserted(
                "Scaling H by c adds 2·58·log10 c.", abs(step - 116.0) < 1e-6, f"{step:.6f} for c = 10; 116 expected."
            ),
            measured("Whether the two scalings rank motions alike.", f"Spearman's rank correlation {rank:.3f}."),
        ),
        differences=("‖det|·|‖ in (7) is |det(·)|, and HᵀH has no negative determinant: the bars are redundant.",),
    )


def conditioning(lab: Lab) -> Item:
    """Conditioning in a part of the workspace and in all of it."""
    everywhere = JointRegion.of(lab.robot, "everywhere")
    rng, home = np.random.default_rng(3), home_posture(lab.robot, everywhere)
    wide = [
        random_motion(lab.robot, everywhere, rng, points=6, home=home, model=lab.truth)
        for _ in range(lab.small.trajectories)
    ]
    groups: dict[str, list[MotionLike]] = {f"box {r.name}": lab.trials[r.name] for r in lab.regions}
    groups |= {f"box {r.name}, a third of the size": lab.small.trials[r.name] for r in lab.regions}
    groups["everywhere"] = list(wide)
    medians, rows = {}, []
    for name, motions in groups.items():
        values = [np.log10(np.linalg.cond(_rows(lab, m).reshape(-1, lab.base.rank))) for m in motions]
        medians[name] = float(np.median(values))
        rows.append((name, len(motions), medians[name], float(np.min(values)), float(np.max(values))))
    large, small = (
        [medians[f"box {r.name}{size}"] - medians["everywhere"] for r in lab.regions]
        for size in ("", ", a third of the size")
    )
    head = ("where", "motions", TableColumn("median"), TableColumn("lowest"), TableColumn("highest"))
    return Item(
        text="Random programs of six via-points. The paper does not say how large its regions are.",
        tables=(paper_table(head, rows, "log10 cond Φ (58 columns, unscaled)"),),
        statements=(
            shown(
                "A part of the workspace shows the parameters worse than all of it.",
                min(*large, *small) > 0.0,
                f"Against everywhere, medians differ by {', '.join(f'{g:+.2f}' for g in large)} in boxes of half a "
                f"metre, by {', '.join(f'{g:+.2f}' for g in small)} in boxes of a third of that.",
                "Half a metre leaves the joints nearly as much room as the whole workspace; only small boxes hide "
                "parameters.",
            ),
        ),
    )


def figure_3(lab: Lab) -> Item:
    """Figure 3: fitness over the generations."""
    panels, rows, rising = [], [], True
    for k, region in enumerate(lab.regions):
        plan = evolved_plan(
            lab.robot,
            region,
            lab.terms,
            optimiser=Genetic(population=lab.population, generations=lab.generations),
            weights="torque",
            model=lab.truth,
            rate=_RATE,
            seed=k,
        )
        best = -np.array([value for _, value in plan.history]) / np.log(10.0)
        generation = np.array([count for count, _ in plan.history]) / lab.population
        rising = rising and bool(np.all(np.diff(best) >= 0.0))
        rows.append((region.name, float(best[0]), float(best[-1]), plan.trajectory.duration, plan.violation))
        panels.append(Panel(f"region {region.name}", (Line.of("best", generation, best),), "generation", "log10 det"))
    head = (
        "region",
        TableColumn("first", digits=5),
        TableColumn("last", digits=5),
        TableColumn("duration", "s"),
        TableColumn("violation"),
    )
    return Item(
        text=f"Six via-points and a speed, {lab.population} individuals, {lab.generations} generations, two elites.",
        tables=(paper_table(head, rows, "Best log10 det(HᵀH), H as printed"),),
        figures=(PaperFigure("Fitness of the best individual", tuple(panels)),),
        statements=(
            asserted("With elites the best never gets worse.", rising, "Histories rise in all regions."),
            asserted(
                "What is delivered keeps to joint, torque and region limits at all times.",
                all(row[-1] == 0.0 for row in rows),
                "No violation.",
            ),
            shown(
                "Evolution finds better motions than chance.",
                all(row[2] > row[1] for row in rows),
                "; ".join(f"{row[0]}: {row[1]:.1f} → {row[2]:.1f}" for row in rows) + ".",
                f"{lab.population} individuals and {lab.generations} generations are few: the first best may stay the "
                "best.",
            ),
        ),
        differences=(
            f"The paper breeds 150 individuals for a number of generations that it does not give; here "
            f"{lab.population} for {lab.generations}.",
        ),
    )
