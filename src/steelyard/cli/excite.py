"""`steelyard excite`."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import app


def _limit(what: str) -> object:
    return typer.Option(metavar="X[,…]", help=f"{what}; one number or one per joint, none to lift.")


@app.command(epilog="Example: steelyard excite arm.urdf --dq 1.5 --box 0.2,0.9,-0.5,0.5,0.1,1.2 --floor 0.05 -o motion")
def excite(
    robot: opt.RobotSource,
    output: opt.Output = "",
    q: Annotated[
        str, typer.Option(metavar="X[,…]", help="Positions ± X, one per joint, or low:high pairs; rad, m.")
    ] = "",
    dq: Annotated[str, _limit("Velocities, rad/s (m/s)")] = "",
    ddq: Annotated[str, _limit("Accelerations; default three times the velocities per s")] = "",
    jerk: Annotated[str, _limit("Jerks")] = "",
    tau: Annotated[str, _limit("Torques, N m (N), of the nominal model")] = "",
    power: Annotated[str, _limit("Powers, W")] = "",
    torque_margin: Annotated[
        float, typer.Option(metavar="SHARE", help="Part of the torque limits to keep free.")
    ] = 0.0,
    duration: Annotated[float, typer.Option(metavar="S", help="Length of the motion.")] = 10.0,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Samples of the motion per second.")] = 100.0,
    harmonics: Annotated[int, typer.Option(metavar="N", help="Harmonics of a series (spans, knots).")] = 5,
    family: Annotated[str, typer.Option(metavar="F", help="fourier, bspline, quintic or acceleration.")] = "fourier",
    criterion: Annotated[
        str, typer.Option(metavar="C", help="cond, information, frobenius, d, a, e or sigma.")
    ] = "cond",
    scaling: Annotated[str, typer.Option(metavar="S", help="natural, unit or orthonormal columns.")] = "natural",
    weights: Annotated[str, typer.Option(metavar="W", help="torque, torque-inverse, or 1/σ of each equation.")] = "",
    term_names: Annotated[
        str, typer.Option("--terms", metavar="T,…", help="Joint terms beside the links; 'default': those of identify.")
    ] = "",
    joints: opt.Joints = "",
    moving: Annotated[
        str, typer.Option(metavar="A,B,…", help="Of these joints, those that move here; the others stand.")
    ] = "",
    equations: Annotated[str, typer.Option(metavar="A,B,…", help="The joints whose torque rows count.")] = "",
    parameters: Annotated[str, typer.Option(metavar="P,…", help="Design for these base parameters alone.")] = "",
    wanted: Annotated[str, typer.Option(metavar="P,…", help="These count; the others must be found too.")] = "",
    posture: Annotated[str, typer.Option(metavar="Q,…", help="A posture the motion shall be about, rad (m).")] = "",
    box: Annotated[str, typer.Option(metavar="X0,X1,Y0,Y1,Z0,Z1", help="A box that the frame stays in, m.")] = "",
    frame: Annotated[str, typer.Option(metavar="LINK", help="The frame that the box is for; default: last link.")] = "",
    floor: Annotated[
        float | None, typer.Option(metavar="Z", help="No link's origin comes below this height, m.")
    ] = None,
    collision: Annotated[
        bool | None,
        typer.Option("--collision/--no-collision", help="Bodies keep apart; default: where the file has any."),
    ] = None,
    clearance: Annotated[float, typer.Option(metavar="M", help="How far bodies keep apart.")] = 0.02,
    packages: Annotated[str, typer.Option(metavar="DIR,…", help="Where package:// meshes are found.")] = "",
    bandwidth: Annotated[float | None, typer.Option(metavar="HZ", help="No harmonic above this frequency.")] = None,
    optimiser: Annotated[str, typer.Option(metavar="O", help="gradient, ga or cma.")] = "gradient",
    via_points: Annotated[
        int, typer.Option(metavar="K", help="Breed programs of K via-points (ga, cma), in --box or in joint space.")
    ] = 0,
    generations: Annotated[int, typer.Option(metavar="N", help="Of ga and cma.")] = 100,
    population: Annotated[int, typer.Option(metavar="N", help="Of ga and cma.")] = 150,
    given: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log: design for what it leaves unknown. May be repeated.")
    ] = None,
    mapping: opt.MapFile = "",
    motions: Annotated[int, typer.Option(metavar="N", help="Several motions that complement each other.")] = 1,
    noise: Annotated[str, typer.Option(metavar="X[,…]", help="Torque noise for the expected errors, N m (N).")] = "",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same motion.")] = 0,
    time: Annotated[float | None, typer.Option(metavar="S", help="Stop searching after so many seconds.")] = None,
    checkpoint: Annotated[
        str, typer.Option(metavar="FILE", help="Write progress there; go on from it if it exists.")
    ] = "",
    gravity: opt.Gravity = "",
    snap: opt.Snap = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Design the motion that shows a robot's parameters best, within limits that hold at every instant."""
    from pathlib import Path

    from steelyard.cli.excite_design import Wishes, design
    from steelyard.ground.files import check_target

    if output:
        check_target(Path(output), overwrite)
    loaded = opt.robot_from(robot, joints, gravity, snap)
    wishes = Wishes(
        source=robot,
        limits={"q": q, "dq": dq, "ddq": ddq, "jerk": jerk, "tau": tau, "power": power},
        torque_margin=torque_margin,
        duration=duration,
        rate=rate,
        harmonics=harmonics,
        family=family,
        criterion=criterion,
        scaling=scaling,
        weights=weights,
        terms=opt.words(term_names),
        joints=opt.words(moving),
        equations=opt.words(equations),
        parameters=opt.words(parameters),
        wanted=opt.words(wanted),
        posture=posture,
        box=box,
        frame=frame,
        floor=floor,
        collision=collision,
        clearance=clearance,
        packages=packages,
        bandwidth=bandwidth,
        optimiser=optimiser,
        via_points=via_points,
        generations=generations,
        population=population,
        given=tuple(given or ()),
        mapping=mapping,
        motions=motions,
        noise=noise,
        seed=seed,
        time=time,
        checkpoint=checkpoint,
    )
    made = design(loaded, wishes, quiet=as_json)
    if output:
        from steelyard.write_designed import write_designed

        write_designed(made, output, overwrite=overwrite)
    if as_json:
        opt.print_json(made.to_json())
        return
    from steelyard.report.designed import print_designed
    from steelyard.report.terminal import console

    print_designed(made, console(), output)
