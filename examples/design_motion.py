"""Design a motion that shows all parameters, and write it for a robot controller."""

from arm import ARM

import steelyard as sy

design = sy.design_motions(
    ARM,
    terms="viscous,coulomb",
    limits={"q": 1.5, "dq": 2.0, "ddq": 6.0},  # rad, rad/s, rad/s²
    duration=8.0,  # s
    harmonics=4,
    search=sy.excitation.SearchSettings(
        starts=2, survivors=(), sharpness=(20.0,), iterations=15
    ),  # the default takes longer
    targets=("csv", "ros2"),
)
print(design)
print(design.to_pandas().to_string(index=False))  # distance of every joint from its limits
design.save("motion", overwrite=True)  # trajectory.csv, programs at 25, 50 and 100 % of the speed, report.html
print(design.plans[0])
