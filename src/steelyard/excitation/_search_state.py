"""State of a motion search, as its checkpoint stores it, and the check that a checkpoint belongs to a search."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard.excitation._lagrangian import Iterate
from steelyard.excitation.constraints.limits import Limits
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.files import plain

_NULLABLE = ("current", "best", "rank", "start_value")  # fields that may be null in a checkpoint


@dataclass
class SearchState:
    """State of a search; the checkpoint stores all of it."""

    stage: int = 0
    current: Iterate | None = None
    pool: list[tuple[float, Iterate]] = field(default_factory=list)
    finished: list[tuple[float, Iterate]] = field(default_factory=list)
    best: Array | None = None
    rank: float = np.inf
    start_value: float = np.nan
    history: list[tuple[int, float]] = field(default_factory=list)
    evaluations: int = 0

    def to_dict(self) -> dict[str, Any]:
        lists = {x: [[rank, it.to_dict()] for rank, it in getattr(self, x)] for x in ("pool", "finished")}
        current = None if self.current is None else self.current.to_dict()
        best = None if self.best is None else self.best.tolist()
        document: dict[str, Any] = plain({**vars(self), **lists, "current": current, "best": best})
        return document

    @staticmethod
    def from_field(document: Field) -> SearchState:
        d = document.table(("stage", "pool", "finished", "history", "evaluations"), _NULLABLE, others=True)

        def ranked_motions(entry: Field) -> list[tuple[float, Iterate]]:
            pairs = [item.pair() for item in entry.items("motion")]
            return [(np.inf if rank.value is None else rank.number(), Iterate.from_field(x)) for rank, x in pairs]

        steps = [item.pair() for item in d["history"].items("step")]
        return SearchState(
            d["stage"].whole(),
            Iterate.from_field(d["current"]) if "current" in d else None,
            ranked_motions(d["pool"]),
            ranked_motions(d["finished"]),
            d["best"].array(None) if "best" in d else None,
            d["rank"].number() if "rank" in d else np.inf,
            d["start_value"].number() if "start_value" in d else np.nan,
            [(n.whole(), np.nan if v.value is None else v.number()) for n, v in steps],
            d["evaluations"].whole(),
        )


def check_owner(document: Field, kind: str, key: str, seed: int) -> None:
    """Refuse a checkpoint of another search.

    Args:
        document: Contents of the checkpoint.
        kind: Name of its format.
        key: Key of the search that is about to start.
        seed: Seed of the search that is about to start.
    """
    table = document.table((), ("format", "problem", "seed"), others=True)
    if [table[k].value if k in table else None for k in ("format", "problem", "seed")] != [kind, key, seed]:
        document.fail(
            "belongs to another search (another robot, goal, limits, optimiser or seed), or is no checkpoint; delete "
            "it, or name another file."
        )


def search_key(limits: Limits, *about: Any) -> str:
    """Compute a hash of a search problem, by which a checkpoint recognises its search.

    Args:
        limits: Limits of the joints.
        about: Everything else that defines the problem.
    """
    digest = hashlib.sha256(repr(list(about)).encode())
    for table in vars(limits).values():
        digest.update(np.ascontiguousarray(table).tobytes())
    return digest.hexdigest()
