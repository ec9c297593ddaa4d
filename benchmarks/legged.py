"""Legged robots in MuJoCo with planted bodies: what `identify` finds, and whether its intervals hold the truth.

    python benchmarks/legged.py                 # two quadrupeds and two humanoids, results/legged.json
    python benchmarks/legged.py go1 3           # one robot, three plants

The quadruped (Go1) sways, squats and trots, the humanoid (Talos, flat feet, locked wrists and head) sways and squats;
contact forces are not measured. The trunk is 12 to 24 % heavier than described and carries a box, the other bodies
differ by 2 %. The classical projection I − J⁺J fits the same rows by least squares with equal weights.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pyarrow as pa
from common import save, show
from pyarrow import parquet

from steelyard.floating import identify_floating

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "floating"))
from legged_plants import GO1, TALOS, Plant, Sensors, mapping_of, measured, motion
from legged_scores import classical_fit, composite, judged

ROBOTS = {
    "go1": (GO1, (("sway", 15.0), ("squat", 10.0), ("trot", 15.0))),
    "talos": (TALOS, (("sway", 20.0), ("squat", 20.0))),
}


def one(name: str, seed: int) -> dict[str, float]:
    """Identify one plant, and compare with its truth."""
    walker, motions = ROBOTS[name]
    plant = Plant(walker, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for k, (kind, seconds) in enumerate(motions):
            columns = measured(plant.play(*motion(walker, kind, seconds, 10 * seed + k)), Sensors(), 10 * seed + k)
            paths.append(Path(folder) / f"{kind}.parquet")
            parquet.write_table(pa.table(columns), paths[-1])
        start = time.process_time()
        mapping = mapping_of(walker, plant.robot)
        result = identify_floating(plant.robot, paths, mapping=mapping, holdout=0.25)
        seconds_used = time.process_time() - start
        truth = plant.truth(result)
        errors = composite(result, truth)
        rivals = classical_fit(plant, paths, mapping, result, truth)
    return {"seed": seed, "cpu_s": seconds_used, **errors, **judged(result, truth), **rivals}


def main() -> None:
    names = [a for a in sys.argv[1:] if a in ROBOTS] or list(ROBOTS)
    count = next((int(a) for a in sys.argv[1:] if a.isdigit()), 2)
    out = {}
    for name in names:
        rows = []
        for seed in range(1, count + 1):
            rows.append(one(name, seed))
            print(name, {k: round(v, 4) for k, v in rows[-1].items()}, flush=True)
        out[name] = rows
        heads = list(rows[0])
        show(name, heads, [[f"{row[h]:.3g}" for h in heads] for row in rows])
    save("legged", out)


if __name__ == "__main__":
    main()
