"""Writes data sets in the layouts of LeRobot, without LeRobot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def write_lerobot(
    folder: Path, names: list[str] | None, signals: dict[str, np.ndarray], episodes: int = 1, version: int = 2
) -> Path:
    """One motion in every episode: `observation.state`, velocity, effort, and an action that is not followed."""
    samples, joints = signals["q"].shape
    fps = round(1.0 / float(signals["t"][1] - signals["t"][0]))
    vectors = {
        "observation.state": signals["q"],
        "observation.velocity": signals["dq"],
        "observation.effort": signals["tau"],
        "action": signals["q"] + 1.0,
    }
    features = {
        name: {
            "dtype": "float64",
            "shape": [joints],
            "names": names if name in ("observation.state", "action") else None,
        }
        for name in vectors
    }
    features |= {name: {"dtype": "int64", "shape": [1], "names": None} for name in ("frame_index", "episode_index")}
    info = {"codebase_version": f"v{version}.0", "fps": fps, "features": features, "total_episodes": episodes}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    data = folder / "data" / "chunk-000"
    data.mkdir(parents=True)

    def table(number: int) -> pa.Table:
        plain = {
            "timestamp": pa.array((np.arange(samples) / fps).astype(np.float32)),
            "frame_index": pa.array(np.arange(samples)),
            "episode_index": pa.array(np.full(samples, number)),
        }
        lists = {name: pa.array(list(x), pa.list_(pa.float64())) for name, x in vectors.items()}
        return pa.table(lists | plain)

    if version == 2:
        for number in range(episodes):
            pq.write_table(table(number), data / f"episode_{number:06d}.parquet")
    else:
        pq.write_table(pa.concat_tables([table(number) for number in range(episodes)]), data / "file-000.parquet")
    return folder
