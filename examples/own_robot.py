"""Describe your own robot by the Denavit-Hartenberg table of its data sheet, and see what can be identified."""

from pathlib import Path

import steelyard as sy

Path("arm.yaml").write_text(
    """convention: standard         # or modified (Craig, Khalil)
lengths: {d1: 0.35, a2: 0.4, d4: 0.3}
rows:                        # theta, d, a, alpha
  - [q1, d1, 0, pi/2]
  - [q2 + pi/2, 0, a2, 0]
  - [q3, 0, 0, pi/2]
  - [q4, d4, 0, -pi/2]
""",
    encoding="utf-8",
)
robot = sy.load_robot("arm.yaml")
print(robot)

inspection = sy.inspect_robot(robot, sy.terms(robot, "rotor", "viscous", "coulomb"))
print(inspection)

base = sy.base_parameters(robot, sy.terms(robot, "viscous", "coulomb"))
for name in base.names:
    print("-", name)
