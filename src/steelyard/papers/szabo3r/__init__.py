"""Szabó & Szádeczky-Kardoss 2021: identifiable parameters, and least squares with and without weights."""

from steelyard.papers.inputs import arm_drawing, input_table
from steelyard.papers.paper import Paper
from steelyard.papers.szabo3r.tables import Lab, angle_noise, base_combinations, figure_2, figure_3, table_2

PAPER = Paper(
    name="szabo3r",
    title="Dynamic parameter identification method for robotic arms with static friction modelling",
    source="D. Szabó and E. Gincsiné Szádeczky-Kardoss, Acta IMEKO, vol. 10, no. 3, 2021",
    about="The paper derives the identifiable parameters of a simulated three-axis arm by row reduction, designs a "
    "motion, and compares least squares with and without weights under noise. Its robot is rebuilt from its Table 2: "
    "uniform cylinders reproduce every exact value. Values that it does not print are our choice and marked.",
    lab=Lab,
    items=(
        input_table("Table 1: Denavit–Hartenberg rows", "szabo3r", "table1"),
        arm_drawing("Figure 1: the arm", "szabo3r", (0.0, 0.4, -0.8)),
        base_combinations,
        figure_2,
        table_2,
        figure_3,
        angle_noise,
    ),
    prints="Tables 1–2, Figures 1–3",
    missing=(("The paper's own motion and its Cond_F(LᵀL)", "Neither is printed."),),
)
