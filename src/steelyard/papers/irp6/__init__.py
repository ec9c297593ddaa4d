"""Kozłowski & Dutkiewicz 1996: integral models, friction curves, exciting motions and loads of an IRp-6."""

from steelyard.papers.inputs import arm_drawing
from steelyard.papers.irp6._lab import Lab
from steelyard.papers.irp6.exciting import figure_6, figure_15, figures_7_to_9
from steelyard.papers.irp6.friction import figure_2, figure_5, figures_3_and_4
from steelyard.papers.irp6.load import figures_10_to_14, forms, table_1
from steelyard.papers.irp6.movements import figure_16, figure_17, long_windows, motor_2, movements
from steelyard.papers.paper import Paper

PAPER = Paper(
    name="irp6",
    title="Experimental identification of dynamic parameters for a class of geared robots",
    source="K. Kozłowski and P. Dutkiewicz, Robotica, vol. 14, 1996",
    about="The paper identifies a geared arm with a parallelogram motor by motor, by energy balances over short "
    "windows. It measures friction over velocity, identifies a payload by a wrist sensor, and optimises exciting "
    "motions. It prints four parameters of the arm, which the simulated arm has; all other values are our choice.",
    lab=Lab,
    items=(
        arm_drawing("Figure 1: the kinematic structure", "irp6", (0.0, 0.2, 0.3), (0.67, 0.0, 0.0)),
        motor_2,
        long_windows,
        movements,
        figure_2,
        figures_3_and_4,
        figure_5,
        table_1,
        forms,
        figure_6,
        figures_7_to_9,
        figures_10_to_14,
        figure_15,
        figure_16,
        figure_17,
    ),
    prints="Table I, Figures 1–17",
    missing=(
        ("The measured curves of all figures", "The measurements are not public; ours are simulated."),
        ("cond 1e14 to 1e13 of three joints, differential model", "Neither its motions nor its scaling are printed."),
        ("Ratios of 165–170 of the ball screws", "They hold within 10° of the reference only; 170 is used throughout."),
    ),
)
