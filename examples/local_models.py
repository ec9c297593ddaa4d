"""Models for parts of the workspace: one per region, joined to a bank that predicts torques."""

from pathlib import Path

from arm import ARM, TRUTH

import steelyard as sy

Path("regions.yaml").write_text(
    """regions:
  left: {joints: {q1: [-1.2, 0.0], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}
  right: {joints: {q1: [0.0, 1.2], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}
""",
    encoding="utf-8",
)
regions = sy.local.read_regions("regions.yaml", ARM)
how = sy.local.Design(duration=5.0, harmonics=2)
motions = sy.design_regions(ARM, regions, how=how)
plant = sy.local.SimulatedArm(TRUTH, sy.local.default_sensors(ARM))
bank = sy.identify_locally(ARM, plant, regions, motions=motions.motions)
print(bank)
