"""Noise of the joint angles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import steelyard as sy
from steelyard.papers.paper import Item, measured, table
from steelyard.papers.szabo3r.lab import Lab
from steelyard.report.elements import Column

LEVELS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)  # rad


def angle_noise(lab: Lab) -> Item:
    """Noise of the joint angles, which the paper calls negligible."""
    rows = tuple((level, bias(lab, level)) for level in LEVELS)
    return Item(
        text="Angles get noise and are differentiated twice by backward differences, as a controller without filters "
        "would do it. Without noise what is left is the delay of half a sample that differences have.",
        tables=(table((Column("noise of angles", "rad"), Column("median bias", "standard errors", 3)), rows),),
        statements=(
            measured(
                "How much noise of the angles is negligible.",
                "Bias in standard errors of the torque noise, median over the 24: "
                + ", ".join(f"{far:.1f} at {level:g} rad" for level, far in rows)
                + ".",
            ),
        ),
    )


def bias(lab: Lab, level: float) -> float:
    """How far the mean of some weighted fits lies from the truth, in standard errors of one of them."""
    found = []
    for seed in range(4 if lab.fast else 20):
        log = lab.noisy(seed)
        q = log.q + level * np.random.default_rng([seed, 1]).normal(size=log.q.shape)
        differenced = replace(log, q=q, dq=None, ddq=None)
        found.append(lab.own.from_base(sy.fit_log(lab.base, differenced, estimator="wls").beta))
    away = np.abs(np.mean(found, axis=0) - lab.own.values(lab.truth.theta))
    return float(np.median(away / np.sqrt(np.diag(lab.covariances["wls"]))))
