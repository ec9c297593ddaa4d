"""Urrea & Pascal 2017: four estimators on a redundant PRRRP arm, Tables 3–6 and Figures 3–8."""

from steelyard.papers.inputs import arm_drawing, input_table
from steelyard.papers.paper import Paper
from steelyard.papers.prrrp._lab import Lab
from steelyard.papers.prrrp.histories import figure_4, figure_5, figure_6
from steelyard.papers.prrrp.tables import figure_3, table_3, table_4
from steelyard.papers.prrrp.validation import figure_8, four_ways, table_5, table_6

PAPER = Paper(
    name="prrrp",
    title="Parameter identification methods for real redundant manipulators",
    source="C. Urrea and J. Pascal, Journal of Applied Research and Technology, 2017",
    about="The paper identifies eight parameters of a simulated redundant arm by least squares, an Adaline, a Hopfield "
    "network and an extended Kalman filter, and validates them by tracking. It prints the robot, but neither its "
    "motion nor any setting of a method or controller: these are our choice and marked.",
    lab=Lab,
    items=(
        input_table("Table 1: Denavit–Hartenberg rows", "prrrp", "table1"),
        input_table("Table 2: lengths, masses and inertias", "prrrp", "table2"),
        arm_drawing("Figure 2: the arm and its axes", "prrrp", (0.1, 0.4, 0.6, 0.5, 0.05)),
        figure_3,
        table_3,
        table_4,
        figure_4,
        figure_5,
        figure_6,
        table_5,
        four_ways,
        table_6,
        figure_8,
    ),
    prints="Tables 1–6, Figures 1–8",
    missing=(
        ("Figure 1", "A block diagram of the scheme, without data."),
        ("The curves of Figures 3 and 5–8 as printed", "Motion, gains and all settings are missing; (44) is empty."),
        ("The Adaline, Hopfield and Kalman columns of Table 4", "They follow from settings that are not printed."),
    ),
)
