"""Compare schemes and estimators on the same hold-out data, and take the one that predicts best."""

from arm import ARM, record

import steelyard as sy

log, other = record(1), record(2)
schemes = sy.compare_schemes(
    ARM, log, other, schemes=("dynamic", "filtered-dynamic", "energy"), terms="viscous,coulomb"
)
print(schemes)
print(schemes.to_pandas().to_string(index=False))

estimators = sy.compare_on_log(ARM, log, other, estimators=("ols", "wls", "huber"), terms="viscous,coulomb")
print(estimators)
