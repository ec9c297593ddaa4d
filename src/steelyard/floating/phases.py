"""Identifiability of contact phases: structural ranks over motions that keep the feet in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.floating.null_space import null_space
from steelyard.floating.projected_rows import PhasePiece, RowMaker
from steelyard.floating.row_information import shown_base
from steelyard.floating.setup import CONTACT_ROWS
from steelyard.ground.arrays import Array
from steelyard.regression._structure import VISIBLE, random_states
from steelyard.regression.base_parameters import BaseParameters

_SEED = 20261118


def phase_summaries(maker: RowMaker, stretches: Sequence[PhasePiece]) -> tuple[dict[str, Any], ...]:
    """Summarise the contact phases: time, stretches, rows per sample, and identifiable base parameters.

    Args:
        maker: Computes the projected rows of the robot.
        stretches: Stretches of the fit.
    """
    out = []
    missing = stretches[0].motion.missing
    contacts = maker.preparer.unknown
    for closed in sorted({s.closed for s in stretches}):
        own = [s for s in stretches if s.closed == closed]
        low = own[0].motion.low_pass
        step = max(1, int(0.2 / (low.cutoff_hz * low.period)))
        W = consistent_rows(maker, closed, missing)
        names = ", ".join(contacts[k].frame for k in closed)
        known = ", ".join(f"{c.frame} (measured)" for c in maker.preparer.known)
        out.append(
            {
                "contacts": ", ".join(x for x in (names, known) if x) or "none",
                "seconds": sum(len(s.samples) for s in own) * step * low.period,
                "stretches": len(own),
                "rows": W.shape[1],
                "rank": rank_of(W.reshape(-1, W.shape[-1])),
            }
        )
    return tuple(out)


def base_of_phases(maker: RowMaker, stretches: Sequence[PhasePiece]) -> BaseParameters:
    """Return the combinations of base parameters that are identifiable from all contact phases together.

    Args:
        maker: Computes the projected rows of the robot.
        stretches: Stretches of the fit.
    """
    missing = stretches[0].motion.missing
    sets = sorted({s.closed for s in stretches})
    tables = [consistent_rows(maker, closed, missing) for closed in sets]
    return shown_base(maker.base, np.vstack([W.reshape(-1, W.shape[-1]) for W in tables]), VISIBLE)[0]


def consistent_rows(maker: RowMaker, closed: Sequence[int], missing: NDArray[np.bool_], seed: int = _SEED) -> Array:
    """Compute projected rows at random states that keep closed contacts in place, `(samples, rows, base parameters)`.

    Velocities satisfy J q̇ = 0, accelerations J q̈ + J̇ q̇ = 0.

    Args:
        maker: Computes the projected rows of the robot.
        closed: Indices of the closed unknown contacts.
        missing: Flags of the coordinates without a measured torque, `(joints,)`.
        seed: Seed of the states.
    """
    robot = maker.preparer.robot
    count = max(40, 4 * len(maker.base.independent) // max(robot.dof, 1))
    q, dq, ddq = random_states(robot, count, seed, slow=len(maker.dynamics.terms) > 0)
    if closed:
        none = np.zeros(robot.dof, dtype=bool)
        J = maker.unknown_rows(q, closed, none)
        inverse = np.linalg.pinv(J)
        dq = dq - np.einsum("tnm,tm->tn", inverse, np.einsum("tmn,tn->tm", J, dq))
        a = []
        for k in closed:
            contact = maker.preparer.unknown[k]
            m = FrameKinematics(robot, robot.frame(contact.frame))(q, dq, ddq)
            # The velocity of the origin is zero, so the derivative of the components of J q̇ is its acceleration.
            whole = np.hstack([m.pull + m.gravity, m.turn])
            a.append(whole[:, list(CONTACT_ROWS[contact.kind])])
        ddq = ddq - np.einsum("tnm,tm->tn", inverse, np.hstack(a))
    N, usual = null_space(maker.unknown_rows(q, closed, missing), maker.scale)
    history = maker.dynamics.terms.random_history(np.random.default_rng(seed), count)
    Y = maker.dynamics.torque_regressor(q, dq, ddq, history=history)[:, :, list(maker.base.independent)]
    return np.asarray(np.einsum("tnk,tnp->tkp", N, Y * maker.scale[:, None])[usual])


def rank_of(W: Array) -> int:
    """Compute the structural rank of rows `W`, columns scaled to unit norm."""
    norms = np.linalg.norm(W, axis=0)
    seen = norms > 1e-8 * max(float(norms.max(initial=0.0)), 1e-300)
    values = np.linalg.svd(W[:, seen] / norms[seen], compute_uv=False)
    return int(np.sum(values > VISIBLE * values[0])) if values.size else 0
