"""C code of elastic joints: deflections, torques of the springs, and positions of the links."""

from __future__ import annotations

import numpy as np

from steelyard.elasticity.elasticity import Elasticity
from steelyard.ground.arrays import Array


def elastic_c(elasticity: Elasticity, prefix: str) -> tuple[str, str]:
    """Return the header and the source.

    Args:
        elasticity: Elastic joints; joints with unknown stiffness are rigid.
        prefix: Prefix of the functions, a name in C.
    """
    n = elasticity.robot.dof
    header = f"""/* Elastic joints of {_plain(elasticity.robot.name)}, by Steelyard. SI units, over the gears. */
#ifndef {prefix.upper()}_ELASTIC_H
#define {prefix.upper()}_ELASTIC_H
#define {prefix.upper()}_JOINTS {n}
#ifdef __cplusplus
extern "C" {{
#endif
/* Deflections (motor minus link) under torques of the springs. */
void {prefix}_deflection(const double spring[{n}], double deflection[{n}]);
/* Torques of the springs from motion of motors and links; 0 for rigid joints. */
void {prefix}_spring_torque(const double theta[{n}], const double dtheta[{n}], const double q[{n}],
                       const double dq[{n}], double spring[{n}]);
/* Positions of the links from torque and motion of the motors: spring torque = torque - rotor - friction. */
void {prefix}_link_position(const double theta[{n}], const double dtheta[{n}], const double ddtheta[{n}],
                       const double tau[{n}], double q[{n}]);
#ifdef __cplusplus
}}
#endif
#endif
"""
    tables = _tables(elasticity)
    arrays = "\n".join(f"static const double {name}[{n}] = {{{_numbers(x)}}};" for name, x in tables.items())
    source = f"""#include "{prefix}_elastic.h"

/* Compliance 1/K, stiffness, damping, rotor, Coulomb and viscous friction. Rigid joints: compliance, stiffness = 0. */
{arrays}

static double direction(double speed) {{ return (speed > 0.0) - (speed < 0.0); }}

void {prefix}_deflection(const double spring[{n}], double deflection[{n}]) {{
  for (int k = 0; k < {n}; k++) deflection[k] = compliance[k] * spring[k];
}}

void {prefix}_spring_torque(const double theta[{n}], const double dtheta[{n}], const double q[{n}],
                       const double dq[{n}], double spring[{n}]) {{
  for (int k = 0; k < {n}; k++)
    spring[k] = stiffness[k] * (theta[k] - q[k]) + damping[k] * (dtheta[k] - dq[k]);
}}

void {prefix}_link_position(const double theta[{n}], const double dtheta[{n}], const double ddtheta[{n}],
                       const double tau[{n}], double q[{n}]) {{
  for (int k = 0; k < {n}; k++)
    q[k] = theta[k] - compliance[k] * (tau[k] - rotor[k] * ddtheta[k] - viscous[k] * dtheta[k]
                                       - coulomb[k] * direction(dtheta[k]));
}}
"""
    return header, source


def _tables(elasticity: Elasticity) -> dict[str, Array]:
    out = {
        n: np.zeros(elasticity.robot.dof) for n in ("compliance", "stiffness", "damping", "rotor", "coulomb", "viscous")
    }
    for one in elasticity.known:
        k = elasticity.robot.joint_index(one.joint)
        out["compliance"][k], out["stiffness"][k] = one.compliance.value, one.stiffness
        out["damping"][k] = one.damping.value if one.damping is not None and one.damping.low > 0.0 else 0.0
        out["rotor"][k] = one.rotor.value if one.rotor is not None else 0.0
        out["coulomb"][k], out["viscous"][k] = one.friction
    return out


def _numbers(x: Array) -> str:
    return ", ".join(repr(float(v)) for v in x)


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c in " -_." else "_" for c in name)
