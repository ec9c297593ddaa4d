"""Test a motion in simulation before it runs on hardware: does it recover parameters that are known?"""

from arm import ARM

import steelyard as sy

plan = sy.excite(
    ARM,
    terms="viscous,coulomb",
    limits={"q": 1.2, "dq": 1.5, "ddq": 4.0},  # a margin for the tracking error of the controller
    duration=8.0,
    harmonics=4,
    search=sy.excitation.SearchSettings(starts=2, survivors=(), sharpness=(20.0,), iterations=15),
)
rehearsal = sy.rehearse(ARM, plan.trajectory, terms="viscous,coulomb", rate=500.0, seeds=2)
print("passed" if rehearsal.passed else "failed")
for judgement in rehearsal.judgements:
    print("-", judgement.text)
assert rehearsal.passed
