"""Measure the friction of every joint over velocity, and choose the law behind it."""

from arm import ARM, record

import steelyard as sy

curves = sy.measure_friction(ARM, [record(1), record(3)])
print(curves)
print(curves.to_pandas("laws").to_string(index=False))
for joint in curves.joints:
    print(joint.joint, joint.law.law.name, joint.law.coefficients.round(3))
