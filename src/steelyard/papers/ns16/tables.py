"""Table II and the plausibility of its numbers; the fitness of (6) and (7), conditioning in small boxes, Figure 3."""

from __future__ import annotations

import re

import numpy as np

import steelyard as sy
from steelyard.ground import Array
from steelyard.local import JointRegion, MotionLike, home_posture, random_motion
from steelyard.papers.ns16._lab import PATIENCE, PLANTS, RATE, SECONDS, Lab
from steelyard.papers.paper import (
    Item,
    PaperFigure,
    assertion,
    claim_result,
    measurement,
    number_list,
    paired_columns,
    paper_table,
    printed_table,
)
from steelyard.report import Line, Panel, TableColumn


def _ours(text: str) -> str:
    """Convert a name: mc2y → my2, I2xy → Ixy2, I3m → Ia3."""
    text = re.sub(r"mc(\d)([xyz])", r"m\2\1", text)
    text = re.sub(r"I(\d)m", r"Ia\1", text)
    return re.sub(r"I(\d)([xyz]{2})", r"I\2\1", text)


def _printed_coefficients(text: str) -> dict[str, float]:
    """Return the coefficients of a printed row by parameter, in our names."""
    signed = re.findall(r"([+-]?)\s*(?:(\d\.\d+)\s+)?([A-Za-z]\w*)", text)
    return {_ours(name): (-1.0 if sign == "-" else 1.0) * float(size or 1.0) for sign, size, name in signed}


def _leads() -> list[str]:
    """Return the leading parameter of each of the 40 rows, in our names."""
    return [_ours(re.split(r"\s", text)[0]) for text in printed_table("ns16", "table2").words("expression")[:40]]


def table_2(lab: Lab) -> Item:
    """Table II: the parameters and their combinations, from the geometry."""
    robot = lab.robot
    base = sy.base_parameters(robot, sy.terms(robot, "rotor"))
    ranks = [sy.base_parameters(robot).rank, base.rank, lab.base.rank]
    texts = printed_table("ns16", "table2").words("expression")[:40]
    names = [p.name for p in base.parameters]
    same = sorted(_leads()) == sorted(base.names)
    rows, worst = [], 0.0
    for row, (text, lead) in enumerate(zip(texts, _leads(), strict=True), start=1):
        own = base.names.index(lead)
        ours = dict(zip(names, base.matrix[own].tolist(), strict=True))
        print_ = _printed_coefficients(text)
        off = max((abs(v - ours[n]) for n, v in print_.items()), default=0.0)
        missing = {n for n, v in ours.items() if v} ^ set(print_)
        worst = max(worst, off if not missing else 1.0)
        rows.append((row, text, base.formulas[own], off))
    lengths = ", ".join(f"{name} = {1000.0 * value:.0f} mm" for name, value in robot.lengths.items())
    return Item(
        text="The right column is the result of base_parameters from the kinematics, with the robot's "
        f"lengths: {lengths}. Link frames have the orientation of frame i and their origin on axis i.",
        tables=(paper_table(("row", "as printed", "ours", TableColumn("largest difference", digits=2)), rows),),
        statements=(
            assertion("Ranks: 36 for the links, 40 with rotors, 58 with friction.", ranks == [36, 40, 58], f"{ranks}."),
            assertion(
                "The 40 rows agree with ours: the same leading parameters, combined in the same way.",
                same and worst < 1.0,
                f"{len(rows)} rows, no parameter more or less in any of them.",
            ),
            assertion(
                "Printed coefficients are ours, truncated to three decimals instead of rounded.",
                5e-4 < worst < 1e-3,
                f"Largest difference {worst:.1e}.",
            ),
        ),
        differences=(
            "Row 10 has lost its label in print; it must be the rotor of joint 4, or the rank would be 39.",
            "“40 parameters for a 6-dof manipulator” holds with independent rotors on joints 3 to 6 only.",
        ),
    )


def table_2_values(lab: Lab) -> Item:
    """Table II: the values in A, B and C, printed and ours."""
    rows = printed_table("ns16", "table2")
    friction = [_friction_name(text) for text in rows.words("expression")[40:]]
    places = [lab.base.names.index(name) for name in [*_leads(), *friction]]
    plant = PLANTS[1]
    values = {x.name: x.values[places] for x in lab.bank(plant).models}
    labels = [text.replace("f_{", "f").replace(",", "").replace("}", "") for text in rows.words("expression")]
    cells = [
        (k + 1, labels[k], *(v for x in "ABC" for v in (rows.numbers(x)[k], values[x][k])), lab.true_values[places[k]])
        for k in range(58)
    ]
    head = ("row", "as printed", *(c for x in "ABC" for c in paired_columns(x, digits=4)), TableColumn("true here"))
    off = [float(np.max(np.abs(values[x][:40] - lab.true_values[places[:40]]))) for x in "ABC"]
    paper = [float(np.max(np.abs(rows.numbers(x)[:40]))) for x in "ABC"]
    return Item(
        text=f"Ours are from {SECONDS:g} s of the evolved motion of each region, arm {plant}, free fits; “true” are "
        "the values of the simulated arm without these effects. The real arm's values are not known.",
        tables=(paper_table(head, cells, "kg m², kg m; friction in N m and per rad/s, (rad/s)²"),),
        statements=(
            measurement(
                "Errors of our values, and size of the printed values.",
                f"Largest error of the 40 in A, B, C: {number_list(off, '.1f')}; largest printed value: "
                f"{number_list(paper, '.0f')}.",
            ),
        ),
    )


def _friction_name(label: str) -> str:
    """Convert a label: f_{0,3} → Fc3 and so on."""
    kind, joint = re.findall(r"\d", label)
    return f"{('Fc', 'Fv', 'F2')[int(kind)]}{joint}"


def printed_values(_: Lab) -> Item:
    """Table II: the printed values as bodies."""
    rows = printed_table("ns16", "table2")
    values = {x: rows.numbers(x)[:40] for x in "ABC"}
    which = {6: "I3m", 21: "I6zz", 23: "inertia about axis 1", 35: "I4yy + I5zz", 39: "I5yy + I6yy"}
    shown = [(row, name, *(values[x][row - 1] for x in "ABC")) for row, name in which.items()]
    negative = {x: [row for row in which if values[x][row - 1] < 0.0] for x in "ABC"}
    largest = [float(np.max(np.abs(values[x]))) for x in "ABC"]
    return Item(
        text="Moments of inertia and of rotors are positive, and so are sums of them.",
        tables=(paper_table(("row", "what", "A", "B", "C"), shown),),
        statements=(
            assertion(
                "None of the three printed sets is physically possible.",
                all(negative.values()),
                "; ".join(f"{x}: rows {', '.join(map(str, r))} are negative" for x, r in negative.items()) + ".",
            ),
            measurement("Differences between the sets.", f"Largest values {', '.join(f'{s:.0f}' for s in largest)}."),
        ),
        differences=("They cannot be simulated; the simulated arm has its own, possible bodies.",),
    )


def friction_labels(lab: Lab) -> Item:
    """Table II, rows 41–58: assignment of friction to joints."""
    rows = printed_table("ns16", "table2")
    shares = {x: rows.numbers(x)[40:52] for x in "ABC"}
    read = {
        "as labelled (rows 41–46)": np.array([shares[x][:6] for x in "ABC"]),
        "every other row (41, 43, … 51)": np.array([shares[x][::2] for x in "ABC"]),
    }
    percent = {name: 100.0 * values / lab.nominal for name, values in read.items()}
    cells = [(name, *(f"{p[:, k].min():.1f} … {p[:, k].max():.1f}" for k in range(6))) for name, p in percent.items()]
    labelled, interleaved = percent.values()
    wide, narrow = (float(p.max() / p.min()) for p in percent.values())
    low, high = float(interleaved.min()), float(interleaved.max())
    return Item(
        text="Coulomb friction of geared joints is some percent of their nominal torque, on all joints.",
        tables=(
            paper_table(
                ("reading", *(f"f0 of joint {k} [% of nominal]" for k in range(1, 7))), cells, "Range over A, B, C"
            ),
        ),
        statements=(
            assertion(
                "Read as labelled, friction takes most of joint 5's nominal torque and hardly any of joint 2's; read "
                f"as interleaved, all joints are between {low:.0f} and {high:.0f} %.",
                labelled[:, 4].min() > 50.0 and labelled[:, 1].max() < 1.0 and low > 1.0 and high < 25.0,
                f"{number_list(labelled[:, 4])} % on joint 5 and {number_list(labelled[:, 1])} % on joint 2 in A, B, C "
                f"as labelled; largest over smallest {wide:.0f} as labelled, {narrow:.1f} interleaved.",
            ),
        ),
        differences=("The labels are most probably interleaved; this is an inference from plausibility.",),
    )


def _rows(lab: Lab, motion: MotionLike) -> Array:
    """Return base columns of the torque rows, shape (samples, joints, 58)."""
    t = np.arange(0.0, motion.duration, 1.0 / RATE)
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
        text="(6) multiplies joint j's rows by τnom_j/τmax, which reduces the weight of the wrist although the text "
        "wants equal actuators; dividing achieves that, and is D-optimal for noise proportional to nominal torque.",
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
            assertion(
                "Scaling H by c adds 2·58·log10 c.", abs(step - 116.0) < 1e-6, f"{step:.6f} for c = 10; 116 expected."
            ),
            measurement("Whether the two scalings rank motions alike.", f"Spearman's rank correlation {rank:.3f}."),
        ),
        differences=("‖det|·|‖ in (7) is |det(·)|, and HᵀH has no negative determinant: the bars are redundant.",),
    )


def conditioning(lab: Lab) -> Item:
    """Conditioning in a part of the workspace and in the whole."""
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
            claim_result(
                "A part of the workspace gives a worse conditioning than the whole.",
                min(*large, *small) > 0.0,
                f"Against everywhere, medians differ by {', '.join(f'{g:+.2f}' for g in large)} in boxes of half a "
                f"metre, by {', '.join(f'{g:+.2f}' for g in small)} in boxes of a third of that.",
                "In half a metre the joints have nearly as much room as in the whole workspace; only small boxes make "
                "parameters unidentifiable.",
            ),
        ),
    )


def figure_3(lab: Lab) -> Item:
    """Figure 3: fitness over the generations."""
    panels, rows, rising, still = [], [], True, 0
    for region in lab.regions:
        lines = []
        for draw in range(lab.draws):
            _, best, violation = lab.evolution(region.name, draw)
            rising = rising and bool(np.all(np.diff(best) >= 0.0))
            still += len(best) < lab.generations
            lines.append(Line.of("best of each draw", np.arange(1, len(best) + 1), best))
            rows.append((region.name, draw + 1, len(best), float(best[0]), float(best[-1]), violation))
        panels.append(Panel(f"region {region.name}", tuple(lines), "generation", "log10 det"))
    head = (
        "region", "draw", "generations", TableColumn("first", digits=5), TableColumn("last", digits=5),
        TableColumn("violation"),
    )  # fmt: skip
    gains = [np.mean([row[4] - row[3] for row in rows if row[0] == r.name]) for r in lab.regions]
    return Item(
        text=f"Six via-points and a speed, {lab.population} individuals, two elites, until {PATIENCE} generations "
        f"gain less than 1 % or {lab.generations} generations are over; {lab.draws} draw(s).{lab.fast_note}",
        tables=(paper_table(head, rows, "Best log10 det(HᵀH), H as printed"),),
        figures=(PaperFigure("Fitness of the best individual", tuple(panels)),),
        statements=(
            assertion("With elites the best never gets worse.", rising, "Histories rise in all regions."),
            assertion(
                "The results keep joint, torque and region limits at all times.",
                all(row[-1] == 0.0 for row in rows),
                "No violation.",
            ),
            claim_result(
                "Evolution finds motions with a larger determinant than the best of its first generation.",
                all(row[4] > row[3] for row in rows),
                f"log10 det grows by {number_list(gains, '.1f')} in A, B, C on average; {still} of {len(rows)} runs "
                "stopped before the last generation.",
                f"{lab.population} individuals and {lab.generations} generations are few: the first best may stay the "
                "best.",
            ),
        ),
        differences=("The paper gives neither the operators nor the number of generations; the usual ones are used.",),
    )
