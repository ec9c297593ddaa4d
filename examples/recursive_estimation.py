"""Estimate parameters while the robot moves: sample by sample, with error bars that shrink."""

from arm import ARM, record

import steelyard as sy

stream = sy.recursive(ARM, record(1), terms="viscous,coulomb", noise=0.3, every=400)
for snapshot in stream:
    print(f"{snapshot.t:5.1f} s", snapshot.beta[:4].round(3))

print("estimate ± standard error after", snapshot.samples, "samples:")
for name, value, error in zip(stream.base.names, snapshot.beta, snapshot.standard_errors, strict=True):
    print(f"{name:40.40} {value:9.4g} ± {error:.2g}")
