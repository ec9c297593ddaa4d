"""Kozłowski & Dutkiewicz 1996: integral models, friction curves, exciting motions and loads of an IRp-6."""

from steelyard.papers.inputs import drawn_arm
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
    about="The paper identifies a geared arm with a parallelogram motor by motor, by balances of energy over short "
    "windows, measures its friction over velocity, weighs a load by a sensor at the wrist, and looks for motions that "
    "excite. Of the arm it prints four numbers; they are the truth of the simulated one, and all else is chosen.",
    lab=Lab,
    items=(
        drawn_arm("Figure 1: the kinematic structure", "irp6", (0.0, 0.2, 0.3), (0.67, 0.0, 0.0)),
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
