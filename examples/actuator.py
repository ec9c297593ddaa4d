"""Identify a servo from its goals and positions alone, and write it into the file of MuJoCo."""

from pathlib import Path

import mujoco
import numpy as np

import steelyard as sy

# A servo that turns a pendulum, in MuJoCo, in the place of your own. Its encoder has 4096 ticks per turn.
SERVO = """<mujoco><option timestep="0.0005"/><worldbody><body>
  <joint name="elbow" axis="0 1 0" armature="0.0016" damping="0.033" frictionloss="0.02"/>
  <inertial pos="0 0 -0.1" mass="{mass}" diaginertia="1e-6 1e-6 1e-6"/></body></worldbody>
<actuator><position joint="elbow" kp="{stiffness}" forcelimited="true" forcerange="-0.6 0.6"/></actuator>
</mujoco>"""


def record(kp: float, mass: float, seconds: float = 6.0) -> list[str]:
    """Return rows of a table: run, time, goal, position, gain, mass and length of the pendulum."""
    model = mujoco.MjModel.from_xml_string(SERVO.format(mass=mass, stiffness=0.004 * kp))
    data, rows = mujoco.MjData(model), []
    for k in range(round(seconds / 0.005)):
        t = 0.005 * k
        goal = 0.8 * np.sin(2.0 * t) + 0.3 * np.sin(5.3 * t) + 1.2 * (t % 3.0 > 1.5)
        ticks = round(4096 * data.qpos[0] / (2.0 * np.pi))
        rows.append(f"{kp:g}-{mass:g},{t:.3f},{goal:.6f},{2.0 * np.pi * ticks / 4096:.6f},{kp:g},{mass:g},0.1")
        data.ctrl[0] = goal
        mujoco.mj_step(model, data, 10)
    return rows


runs = [row for kp in (100, 200, 400) for mass in (0.25, 0.5) for row in record(kp, mass)]
Path("servo.csv").write_text("\n".join(["log,t,goal,q,kp,mass,length", *runs]) + "\n")

logs = sy.read_command_logs("servo.csv")
fit, judges = [log for log in logs if log.kp != 400], [log for log in logs if log.kp == 400]
drive = sy.identify_actuator(fit, holdout=judges, name="elbow servo")
for row in drive.model.rows():
    print(f"{row['name']:18s} {row['value']:9.5f}  95 % {row['low']:9.5f} to {row['high']:9.5f} {row['unit']}")
print(f"held-out runs: {1e3 * drive.error('hold-out'):.2f} mrad")

Path("robot.xml").write_text(SERVO.format(mass=0.5, stiffness=1.0))
drive.for_simulators(joint="elbow", robot="robot.xml", kp=400).save("servo")
print(*sorted(path.name for path in Path("servo").iterdir()))
