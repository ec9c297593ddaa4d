"""Identify several robots of one type from a folder of logs: a value per robot, per type, and the outliers."""

from pathlib import Path

import numpy as np
from arm import ARM, TRUTH, record

import steelyard as sy

for number in range(3):
    folder = Path("logs") / f"arm-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    theta = TRUTH.theta * np.random.default_rng(number).normal(1.0, 0.02, len(TRUTH.theta))
    for day in (1, 2):
        record(10 * number + day, sy.Model(ARM, TRUTH.terms, theta)).save(folder / f"2026-03-0{day}.csv")

Path("fleet.toml").write_text(
    '[models.arm]\ndescription = "rotradi"\nlogs = "logs/{robot}/{date}.csv"\n', encoding="utf-8"
)
outcome = sy.identify_fleet("fleet.toml", workers=0, check="none", plain=True)
print(outcome)
for name, table in outcome.tables.items():
    print(f"{name}: {table.num_rows} rows of {', '.join(table.column_names[:5])}, …")
outcome.save("fleet-run", overwrite=True, report=False)
