"""Export an identified model to MuJoCo, load it there, and compare the torques."""

import numpy as np
from arm import ARM, record

import steelyard as sy

result = sy.identify(ARM, record(1), terms="viscous", plain=True, check=False)
model = sy.as_model(result)
left_out = sy.model_to_mjcf(model, "arm.xml")
print("not in the file:", ", ".join(left_out) or "nothing")

try:
    import mujoco
except ImportError:
    raise SystemExit("pip install mujoco to load the file.") from None
scene = mujoco.MjModel.from_xml_path("arm.xml")
data = mujoco.MjData(scene)
data.qpos[:], data.qvel[:], data.qacc[:] = [0.3, -0.2, 0.5], [0.1, 0.2, -0.3], [1.0, -1.0, 0.5]
mujoco.mj_inverse(scene, data)
ours = model.torque(data.qpos[None], data.qvel[None], data.qacc[None])[0]
print("MuJoCo:   ", np.round(data.qfrc_inverse, 4))
print("Steelyard:", np.round(ours, 4))
assert np.allclose(data.qfrc_inverse, ours, atol=1e-6 * np.abs(ours).max())
