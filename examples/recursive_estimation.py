"""Estimate parameters while the robot moves: sample by sample, with error bars that shrink."""

from arm import ARM, record

import steelyard as sy

stream = sy.recursive(ARM, record(1), terms="viscous,coulomb", noise=0.3, every=400)
print("    time", *(f"{name[:20]:>24}" for name in stream.base.names[:3]))
for snapshot in stream:
    values = zip(snapshot.beta[:3], snapshot.standard_errors[:3], strict=True)
    print(f"{snapshot.t:6.1f} s", *(f"{value:14.4f} ± {error:7.4f}" for value, error in values))
