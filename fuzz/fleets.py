"""Fleets as targets: tables, files of a store, and what schedulers and workers answer."""

from __future__ import annotations

import io
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fuzz import mutators as change
from steelyard.errors import SteelyardError
from steelyard.fleet.connection import check_identity, dashboard_page, worker_cores
from steelyard.fleet.executor import check_outcome
from steelyard.fleet.log_factors import _MAGIC, LogFactors, _head, merge_factors, skipped_log
from steelyard.fleet.robot_table import read_fleet
from steelyard.fleet.settings import RobotTypeSettings, content_key
from steelyard.fleet.store import FactorStore
from steelyard.ground.untrusted_files import parse_json

Target = tuple[str, str, tuple[bytes, ...], change.Mutator, Callable[[Path], Any]]

FLEET = b"""mapping = "mapping.toml"
[models.arm]
description = "szabo3r"
joints = ["q1", "q2", "q3"]
lock = {}
snap = 1e-4
logs = "{robot}/{date}*.csv"
[robots.a-2]
model = "arm"
logs = ["a-1/x.csv", {files = "a-3/*", date = 2026-03-01, temperature = 20.5, load = "tool"}]
mapping = {time = {rate = 100}}
"""
FLEET_TABLE = b"""robot,model,description,log,mapping,date,temperature,load
a-1,arm,szabo3r,a-1/2026-03-01.csv,mapping.toml,2026-03-01,21.5,tool
a-1,arm,szabo3r,a-1/*.csv,,,,
a-3,szabo3r,,a-3/,ur-rtde,2026-03-01T06:30:00+02:00,-5,
"""
_KEY = content_key("fuzz")
_PLACE = {"size": 3, "mtime_ns": 10**18, "inode": 7}
_SETTINGS = {
    "schema": "steelyard.fleet-settings/1", "model": "arm", "robot": "0" * 64, "gravity": [0.0, 0.0, -9.81],
    "torque_used": [True, True], "coupling": [], "motors": [],
    "terms": [{"kind": "viscous", "on": "joint", "where": None, "options": {}}], "preparation": {}, "cutoff_hz": 10.0,
    "scheme": "dynamic", "theta": [1.0, 2.0], "residual_std": [0.1, 0.2], "independent": [0, 1],
    "structure_std": [0.1, 0.1], "chosen_from": ["a.csv"],
}  # fmt: skip
_ANSWERS = {
    "identity": {"type": "Scheduler", "id": "Scheduler-1", "address": "tls://10.0.0.1:8786", "workers": {}},
    "cores": {"tls://10.0.0.2:4000": 1, "tls://10.0.0.3:4000": 8},
    "dashboard": "http://10.0.0.1:8787/status",
    "outcome": [0.25, [1, 2, 3]],
}


def fleet_targets(folder: Path) -> Iterator[Target]:
    """Fleets in `folder`, beside a log.csv."""
    fleet = _fleet_folder(folder)

    def read(path: Path) -> Any:
        target = fleet / f"read{path.suffix}"
        shutil.copyfile(path, target)
        return read_fleet(target)

    yield "fleet", ".toml", (FLEET,), change.change_text, read
    yield "fleet-table", ".csv", (FLEET_TABLE,), change.change_csv, read
    yield "fleet-parquet", ".parquet", (_table(),), change.change_parquet, read
    yield from _store_targets(folder / "store")
    answers = json.dumps(_ANSWERS).encode()
    yield "scheduler-answers", ".answers", (answers,), change.change_json, _answered
    yield "fleet-settings", ".settings", (json.dumps(_SETTINGS).encode(),), change.change_json, _settings
    yield "fleet-factors", ".bin", (_factors(), skipped_log("x").to_bytes()), change_factors, _merged


def _fleet_folder(folder: Path) -> Path:
    place = folder / "fleet"
    for name in ("a-1/2026-03-01.csv", "a-1/x.csv", "a-3/run.csv"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "log.csv", place / name)
    (place / "mapping.toml").write_text('time = "t"\n')
    return place


def _table() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [row.split(",") for row in FLEET_TABLE.decode().strip().split("\n")]
    columns = {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0]) if name not in ("mapping", "date")}
    out = io.BytesIO()
    pq.write_table(pa.table({**columns, "temperature": [21.5, None, -5.0]}), out)
    return out.getvalue()


# ---------------------------------------------------------------- stores


def _store_targets(root: Path) -> Iterator[Target]:
    """One file of a store is changed; what it holds is then as it was, or not believed."""
    store = FactorStore(root)
    store.put(_KEY, skipped_log("ours").to_bytes())
    store.put_document("settings/a.json", _SETTINGS)
    store.remember("/logs/a", _PLACE, "hash")
    (journal,) = root.glob("identities/*.jsonl")

    def changed(name: Path, read: Callable[[FactorStore], Any], ours: Any) -> Callable[[Path], None]:
        def believe(path: Path) -> None:
            shutil.copyfile(path, name)
            said = read(FactorStore(root))
            assert said is None or said == ours, f"a foreign {name.name} was believed"

        return believe

    entry = root / "factors" / _KEY[:2] / _KEY[2:]
    document = root / "settings" / "a.json"
    yield ("store-entry", ".bin", (entry.read_bytes(),), change.change_bytes,
           changed(entry, lambda s: getattr(s.get(_KEY), "skipped", None), "ours"))  # fmt: skip
    yield ("store-document", ".document", (document.read_bytes(),), change.change_json,
           changed(document, lambda s: s.document("settings/a.json"), _SETTINGS))  # fmt: skip
    yield ("store-journal", ".jsonl", (journal.read_bytes(),), change.change_text,
           changed(journal, lambda s: s.identity("/logs/a", _PLACE), "hash"))  # fmt: skip


# ---------------------------------------------------------------- answers


def _answered(path: Path) -> None:
    """What a scheduler answers, already unpacked: any plain data may come."""
    answers = parse_json(path.read_bytes().decode("utf-8", "replace"), "answers", SteelyardError)
    if not isinstance(answers, dict):
        return
    client = SimpleNamespace(
        ncores=lambda callback_timeout: answers.get("cores"),
        scheduler=SimpleNamespace(address=answers.get("dashboard")),
        dashboard_link=answers.get("dashboard"),
    )
    link = dashboard_page(client)
    assert link.isprintable()
    outcome = answers.get("outcome")
    check_identity(answers.get("identity"))
    worker_cores(client, 1.0)
    check_outcome(tuple(outcome) if isinstance(outcome, list) else outcome, 3, "here")


def _settings(path: Path) -> None:
    document = parse_json(path.read_bytes().decode("utf-8", "replace"), "settings", SteelyardError)
    RobotTypeSettings.from_json(document, "settings")


def _factors() -> bytes:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    try:
        import numpy as np

        from tests.fleet.population import Truth
    finally:
        sys.path.pop(0)
    truth = Truth(2, np.random.default_rng(0))
    return truth.log("", truth.mean, np.zeros(2), 100).to_bytes()


def change_factors(rng: random.Random, data: bytes) -> bytes:
    """What a worker hands over, changed, and most often with the hash that fits: a worker may say anything."""
    _, _, body = data.removeprefix(_MAGIC).partition(b"\n")
    text, _, numbers = body.partition(b"\n")
    if rng.random() < 0.2:
        return change.change_bytes(rng, data)
    if rng.random() < 0.7:
        text = change.change_json(rng, text).replace(b"\n", b" ")
    else:
        numbers = change.change_bytes(rng, numbers)
    body = text + b"\n" + numbers
    return _MAGIC + _head(body) + b"\n" + body


def _merged(path: Path) -> None:
    made = LogFactors.from_bytes(path.read_bytes())
    if made.factor is not None:
        merge_factors([made, made])
    assert isinstance(made.skipped, str)
