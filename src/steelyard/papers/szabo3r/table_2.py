"""Table 2."""

from __future__ import annotations

import numpy as np

from steelyard.papers.paper import Item, asserted, beside, table
from steelyard.papers.szabo3r.lab import TABLE2, Lab


def table_2(lab: Lab) -> Item:
    """Table 2: mean and variance of the estimators."""
    exact, names = lab.own.values(lab.truth.theta), lab.own.names
    mean = {n: x.mean(axis=0) for n, x in lab.estimates.items()}
    variance = {n: x.var(axis=0, ddof=1) for n, x in lab.estimates.items()}
    columns, values = ["parameter", *beside("exact", places=3)], [TABLE2.numbers("exact"), exact]
    for ours, theirs in (("ols", "ls"), ("wls", "wls")):
        columns += [*beside(f"{theirs.upper()} mean", places=3), *beside(f"{theirs.upper()} variance", digits=3)]
        values += [TABLE2.numbers(f"{theirs}_mean"), mean[ours], TABLE2.numbers(f"{theirs}_var"), variance[ours]]
    ratio = np.diag(lab.covariances["wls"]) / np.diag(lab.covariances["ols"])
    bias = max(float(np.max(np.abs(mean[n] - exact) / np.sqrt(variance[n] / lab.runs))) for n in mean)
    strange = _distances("ls")
    size = float(np.median(variance["ols"] / TABLE2.numbers("ls_var")))
    off = float(np.max(np.abs(exact - TABLE2.numbers("exact"))))
    return Item(
        text=f"{lab.runs} measurements of the motion, each with its own noise. Weights come from the residuals of each "
        "joint; nobody tells the estimator the noise.",
        tables=(table(columns, zip(names, *values, strict=True)),),
        statements=(
            asserted(
                "The exact values are those of uniform cylinders of 3 cm radius and 1000 kg/m³.",
                off < 6e-4,  # three printed decimals
                f"Largest difference {off:.4f}.",
            ),
            asserted(
                "Least squares with and without weights have no bias.",
                bias < 4.0,  # the largest of 48 normal deviates exceeds this once in 300 times
                f"Means lie within {bias:.1f} of their own standard errors.",
            ),
            asserted(
                "Weights make every variance smaller.",
                np.all(ratio < 1.0),
                f"Exact ratio WLS to LS {ratio.min():.2f} to {ratio.max():.2f}; in the runs, median "
                f"{np.median(variance['wls'] / variance['ols']):.2f}; in print, median "
                f"{np.median(TABLE2.numbers('wls_var') / TABLE2.numbers('ls_var')):.2f}, all below 1.",
            ),
            asserted(
                "Two printed rows cannot belong to the printed exact values: τ_v and τ_sc of joint 2.",
                min(strange["tau_v2"], strange["tau_sc2"]) > 3.0 * max(_others(strange)),
                f"Their means are {strange['tau_v2']:.2f} and {strange['tau_sc2']:.2f} standard deviations off, all "
                f"others at most {max(_others(strange)):.2f}.",
            ),
        ),
        differences=(
            f"The paper's motion is not printed; our variances are {size:.2g} times its (median).",
            "K_v and δ of the friction's arctangents are not printed (500 and 5 s/rad here); they set the variances of "
            "τ_s, τ_sc and τ_v.",
        ),
    )


def _distances(estimator: str) -> dict[str, float]:
    """|mean − exact|/σ of every row of Table 2."""
    off = np.abs(TABLE2.numbers(f"{estimator}_mean") - TABLE2.numbers("exact"))
    values = off / np.sqrt(TABLE2.numbers(f"{estimator}_var"))
    return dict(zip(TABLE2.words("key"), values.tolist(), strict=True))


def _others(distances: dict[str, float]) -> list[float]:
    return [x for name, x in distances.items() if name not in ("tau_v2", "tau_sc2")]
