"""Chávez-Olivares et al. 2012: five regression schemes on a direct-drive arm, Tables 1–4 and Figures 2–8."""

from steelyard.papers.inputs import arm_drawing, input_table
from steelyard.papers.paper import Paper
from steelyard.papers.rotradi.equations import equations_34_and_37, printed_sets
from steelyard.papers.rotradi.lab import Lab
from steelyard.papers.rotradi.ranking import ranking
from steelyard.papers.rotradi.tables import (
    figure_2,
    figure_3,
    figures_4_and_5,
    figures_6_and_7,
    table_2,
    table_3,
    table_4,
)

PAPER = Paper(
    name="rotradi",
    title="Experimental evaluation of parameter identification schemes on an anthropomorphic direct drive robot",
    source="C. A. Chávez-Olivares, F. Reyes-Cortés, E. J. González-Galván, M. O. Mendoza-Gutiérrez and I. "
    "Bonilla-Gutiérrez, International Journal of Advanced Robotic Systems, 2012",
    about="The paper identifies the 21 parameters of a direct-drive arm by five regression schemes with recursive "
    "least squares. Its measurements are not public, so a simulated arm with the same encoders, clock and torques "
    "replaces it; printed numbers are compared with ours wherever both exist.",
    lab=Lab,
    items=(
        input_table("Table 1: motors and encoders", "rotradi", "table1"),
        table_2,
        printed_sets,
        table_3,
        table_4,
        figure_2,
        figure_3,
        figures_4_and_5,
        figures_6_and_7,
        equations_34_and_37,
        ranking,
        arm_drawing("Figure 8: the kinematics", "rotradi", (0.0, 0.5, 0.9), (0.45, 0.0, 0.0)),
    ),
    prints="Tables 1–4, Figures 1–8",
    missing=(
        ("Figure 1", "A photograph of the arm."),
        ("The measured curves of Figures 2–7", "The paper's measurements are not public; ours are simulated."),
        (
            "The dashes of Table 2, from a measurement",
            "They need flexible modes, ripple or other disturbances of the real arm, of which nothing is printed; "
            "nothing diverges on an arm that obeys its model.",
        ),
    ),
)
