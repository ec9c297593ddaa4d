"""Check a log before you identify from it: here joint 2 has the wrong sign of its torque."""

from dataclasses import replace

from arm import ARM, record

import steelyard as sy

good = record(1)
print(sy.check_log(ARM, good))

wrong = replace(good, tau=good.tau * [1.0, -1.0, 1.0])
check = sy.check_log(ARM, wrong)
print(check)
for advice in check.advice:
    print("-", advice)
assert check.grade != "good"
