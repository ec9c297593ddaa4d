"""A log with motor currents in the columns that a Universal Robots controller records."""

import numpy as np
import pandas as pd
from arm import ARM, record

import steelyard as sy

# N m per A at the joint: the motor's constant times the gear ratio. A UR10e has about 12.7, 12.7, 9.2, 3.5, 3.5, 3.5.
CONSTANTS = np.array([12.0, 9.5, 9.5])


def recorded(seed: int) -> pd.DataFrame:
    """Return a table as the RTDE recorder writes it: time, actual_q_0 …, actual_current_0 …"""
    log = record(seed)
    columns = {"timestamp": log.t}
    columns |= {f"actual_q_{k}": log.q[:, k] for k in range(ARM.dof)}
    columns |= {f"actual_current_{k}": log.tau[:, k] / CONSTANTS[k] for k in range(ARM.dof)}
    return pd.DataFrame(columns)


mapping = {
    "time": "timestamp",
    "position": "actual_q_{0}",
    "current": "actual_current_{0}",
    "torque_constants": CONSTANTS.tolist(),
}
print(sy.check_log(ARM, recorded(1), mapping=mapping))
result = sy.identify(ARM, recorded(1), validate=recorded(2), mapping=mapping, plain=True)
print(result)
