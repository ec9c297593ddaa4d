"""Tables of the scoreboard: ratios of our errors to the baseline's, hold-out by hold-out and set by set."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import show

Array = np.ndarray


def ratio(figures: dict[str, Any], way: str) -> Array:
    return np.asarray(figures["ours"][way]) / figures["baseline"][way.removeprefix("free, ")]


def percent(figures: dict[str, Any], way: str) -> tuple[float, float]:
    """The mean over joints of the error in % of the torque's standard deviation: ours, and the baseline's."""
    std = np.asarray(figures["std"])
    pair = (figures["ours"][way], figures["baseline"][way.removeprefix("free, ")])
    own, theirs = (float(np.mean(100.0 * np.asarray(x) / std)) for x in pair)
    return own, theirs


def file_ratios(one: dict[str, Any]) -> dict[str, Array]:
    """Of every file of a run its errors over the baseline's, score (a), hold-out by hold-out and joint by joint.

    The URDF is also compared with the baseline fitted to the terms that a URDF can hold.
    """
    holdouts = one["holdouts"].values()
    ratios = {
        name: np.array([np.asarray(f["files"][name]) / f["baseline"]["a"] for f in holdouts]) for name in one["files"]
    }
    if "urdf" in ratios:
        ratios["urdf, like for like"] = np.array(
            [np.asarray(f["files"]["urdf"]) / f["baseline, URDF's terms"] for f in holdouts]
        )
    return ratios


def files_summary(results: dict[str, Any]) -> dict[str, Any]:
    """Of every set the mean ratio of the written files to the baseline (worst joint), and their geometric means."""
    sets = {name: file_ratios(one) for name, one in results.items() if "holdouts" in one}
    formats = sorted({name for one in sets.values() for name in one})
    out = {
        f: {
            name: {"mean": float(one[f].mean()), "worst joint": float(one[f].max())}
            for name, one in sets.items()
            if f in one
        }
        for f in formats
    }
    rows = [
        [
            name,
            *(
                f"{out[f][name]['mean']:.2f} ({out[f][name]['worst joint']:.2f})" if name in out[f] else ""
                for f in formats
            ),
        ]
        for name in sets
    ]
    overall = {f: float(np.exp(np.mean([np.log(x["mean"]) for x in out[f].values()]))) for f in formats}
    rows.append(["geometric mean", *(f"{overall[f]:.3f}" for f in formats)])
    show("Written files, mean ratio over joints and hold-outs (worst joint), score (a)", ["set", *formats], rows)
    return {f: {**out[f], "geometric mean": overall[f]} for f in formats}


def report(title: str, f: dict[str, Any]) -> None:
    def cells(values: Any) -> list[str]:
        return [f"{v:.3f}" for v in values]

    rows = [["baseline, published", *cells(f["published"]), ""]] if f["published"] else []
    for name, errors in f["files"].items():
        own = np.asarray(errors) / f["baseline"]["a"]
        rows.append([f"ratio of the {name} file (a)", *cells(own), f"{own.mean():.3f}"])
    if f["published"]:
        again = np.array(f["baseline"]["b"]) / f["published"]
        rows.append(["baseline (b) / published", *cells(again), f"{again.mean():.3f}"])
    rows += [[f"{who} ({w})", *cells(f[who][w]), ""] for w in "ab" for who in ("baseline", "ours")]
    for way in f["ours"]:
        own = ratio(f, way)
        rows.append([f"ratio ({way})", *cells(own), f"{own.mean():.3f}"])
    show(title, ["RMSE, N m (N)", *(str(k + 1) for k in range(len(f["ours"]["a"]))), "mean"], rows)


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """Of every set the mean ratio over joints and hold-outs and the worst joint; over sets the geometric mean."""
    out: dict[str, Any] = {}
    for way in ("a", "b", "a, moving", "b, moving", "free, a"):
        sets = {}
        for name, one in results.items():
            if "holdouts" in one:
                ratios = [ratio(f, way if way in f["ours"] else way[0]) for f in one["holdouts"].values()]
                errors = [percent(f, way if way in f["ours"] else way[0]) for f in one["holdouts"].values()]
                own, theirs = np.mean(errors, axis=0)
                sets[name] = {"mean": float(np.mean(ratios)), "worst joint": float(np.max(ratios))}
                sets[name] |= {
                    "of means": float(own / theirs),
                    "percent": float(own),
                    "baseline percent": float(theirs),
                }
            elif way in ("a", "b"):  # by its published definition, which is neither
                sets[name] = {"mean": one["ratio"], "worst joint": one["ratio"], "of means": one["ratio"]}
        if not sets:
            continue
        overall = {n: float(np.exp(np.mean([np.log(s[n]) for s in sets.values()]))) for n in ("mean", "of means")}
        out[way] = {**sets, "geometric mean": overall["mean"], "geometric mean, of means": overall["of means"]}
    rows = []
    means = []
    for name in [n for n in out["a"] if not n.startswith("geometric mean")]:
        pairs = [out[way].get(name) for way in out]
        rows.append([name, *("" if p is None else f"{p['mean']:.2f} ({p['worst joint']:.2f})" for p in pairs)])
        means.append([name, *("" if p is None else f"{p['of means']:.2f}" for p in pairs)])
    rows.append(["geometric mean", *(f"{out[way]['geometric mean']:.3f}" for way in out)])
    means.append(["geometric mean", *(f"{out[way]['geometric mean, of means']:.3f}" for way in out)])
    show("Mean ratio over joints and hold-outs (worst joint)", ["set", *out], rows)
    show("Ratio of the mean errors, % of the torque's standard deviation", ["set", *out], means)
    return out
