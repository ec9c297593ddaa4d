"""Pedrocchi et al. 2013: local models of an industrial arm from evolved trajectories, Tables I–II and Figures 1–8."""

from steelyard.papers.inputs import input_table
from steelyard.papers.ns16._lab import Lab
from steelyard.papers.ns16.claim import core_claim, figures_4_to_6, figures_7_and_8, parameters_lose_meaning, transfer
from steelyard.papers.ns16.comparison import figure_1, what_evolution_buys
from steelyard.papers.ns16.tables import (
    conditioning,
    figure_3,
    fitness,
    friction_labels,
    printed_values,
    table_2,
    table_2_values,
)
from steelyard.papers.paper import Paper

PAPER = Paper(
    name="ns16",
    title="On robot dynamic model identification through sub-workspace evolved trajectories for optimal torque "
    "estimation",
    source="N. Pedrocchi, E. Villagrossi, F. Vicentini and L. Molinari Tosatti, IEEE/RSJ International Conference on "
    "Intelligent Robots and Systems, 2013",
    about="The paper identifies one model for each of three parts of an arm's workspace, from via-point trajectories "
    "optimised by a genetic algorithm. The models shall predict torques there, whatever values the parameters have. "
    "Its measurements are not public: a simulated arm of the same kinematics and drives replaces the robot, once "
    "exactly as modelled and once with effects that the model lacks.",
    lab=Lab,
    items=(
        input_table("Table I: gear ratios and nominal torques", "ns16", "table1"),
        figure_1,
        table_2,
        table_2_values,
        printed_values,
        friction_labels,
        fitness,
        conditioning,
        figure_3,
        what_evolution_buys,
        figures_4_to_6,
        figures_7_and_8,
        core_claim,
        parameters_lose_meaning,
        transfer,
    ),
    prints="Tables I, II, Figures 1–8",
    missing=(
        ("Figure 2", "The flow chart of the procedure."),
        ("The measured curves of Figures 4–8", "The paper's measurements are not public; ours are simulated."),
        ("The genetic algorithm's operators and its number of generations", "Not given; the usual ones are used."),
    ),
)
