"""Motions as programs of timed via-points (KUKA, ABB and Fanuc), and tables for their fast interfaces."""

from __future__ import annotations

import numpy as np

from steelyard.excitation.controller_formats.streams import rows_as_csv
from steelyard.excitation.controller_formats.target import (
    MOTION_TARGETS,
    MotionTarget,
    Playback,
    decimal_texts,
    program_name,
)
from steelyard.ground.arrays import Array

# The manufacturer's axes may differ from those of the URDF.
_AXES = (
    "Angles are those of the description. The program moves slowly to the first posture and waits there: compare sign "
    "and zero of every axis with the pendant before you continue."
)
_UNPROVEN = " Limits and collisions were checked along the designed motion, but not along this path."
_FAST = 250.0  # Hz: a row every 4 ms


class _ViaPoints(MotionTarget):
    """Five postures a second, in degrees, each with its time."""

    rate, joints = 5.0, 6

    def degrees(self, playback: Playback) -> tuple[Array, list[list[str]]]:
        """Return the times [s] and the formatted postures of a `playback`."""
        t, (q, _, _) = self.points(playback)
        return t, [decimal_texts(np.degrees(row), 4) for row in q]

    def fast(self, playback: Playback, heads: list[str], since_start: bool) -> str:
        """Return a table with a row every 4 ms: s and degrees; `since_start`: relative to the first posture."""
        t = np.arange(round(playback.duration * _FAST) + 1) / _FAST
        q = np.degrees(playback.sample(t)[0])
        return rows_as_csv(heads, [t, q - q[0] if since_start else q], 6)


class Kuka(_ViaPoints):
    """A KRL program with a PTP spline through the postures, and a table of corrections for RSI."""

    title = "KUKA (KRL; table for RSI)"
    how_to_play = (
        "Copy the .src to the controller and run it in T1 first. RSI: the table holds axis angles relative to the "
        "first posture, a row every 4 ms, as AKorr takes them (absolute corrections). " + _AXES
    )
    changes = (
        "The PTP spline passes through all postures at the stated times if the axes can (TIME_BLOCK, KSS 8.3 and "
        "later); between them the controller chooses the path, and it slows down if a limit would be exceeded."
        + _UNPROVEN
    )

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, postures = self.degrees(playback)
        name = f"{program_name(playback.robot, 16)}_{playback.percent}"
        axes = [", ".join(f"A{j + 1} {x}" for j, x in enumerate(row)) for row in postures]
        share = decimal_texts([100.0 / (len(t) - 1)], 6)[0]
        block = [f"    SPTP {{{axes[1]}}}"]
        block += [line for row in axes[2:] for line in (f"    TIME_BLOCK PART = {share}", f"    SPTP {{{row}}}")]
        lines = [
            "&ACCESS RVP",
            f"DEF {name}( )",
            f"  ; {len(t)} postures at {playback.percent} % of the designed speed, {playback.duration:g} s; degrees",
            "  BAS(#INITMOV, 0)",
            "  BAS(#VEL_PTP, 5)",
            f"  PTP {{{axes[0]}}}",
            "  WAIT SEC 5.0 ; compare the axes with the pendant",
            "  BAS(#VEL_PTP, 100)",
            "  PTP_SPLINE",
            "    TIME_BLOCK START",
            *block,
            f"    TIME_BLOCK PART = {share}",
            f"    TIME_BLOCK END = {decimal_texts([playback.duration], 4)[0]}",
            "  ENDSPLINE",
            "END",
            "",
        ]
        heads = ["t", *(f"A{j + 1}" for j in range(self.joints))]
        return {f"{stem}.src": "\r\n".join(lines), f"{stem}-rsi.csv": self.fast(playback, heads, since_start=True)}


class Abb(_ViaPoints):
    """A RAPID module of MoveAbsJ with times, and a table of joint angles for EGM."""

    title = "ABB (RAPID; table for EGM)"
    how_to_play = (
        "Load the module and call its procedure, in manual mode first. EGM: stream the rows as joint positions, one "
        "every 4 ms. " + _AXES
    )
    changes = (
        "MoveAbsJ moves from posture to posture in the stated time (\\T) on straight lines in joint space and cuts the "
        "corners (z10), so it passes near the postures; the controller chooses the accelerations." + _UNPROVEN
    )

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, postures = self.degrees(playback)
        name = f"{program_name(playback.robot, 20)}_{playback.percent}"
        outer = ",".join(["9E9"] * 6)
        targets = [f"[[{','.join(row)}],[{outer}]]" for row in postures]
        time = decimal_texts([t[1]], 4)[0]
        moves = [f"    MoveAbsJ {x}\\NoEOffs, v1000\\T:={time}, z10, tool0;" for x in targets[1:-1]]
        lines = [
            f"MODULE M_{name}",
            f"  ! {len(t)} postures at {playback.percent} % of the designed speed, {playback.duration:g} s; degrees",
            f"  PROC play_{name}()",
            f"    MoveAbsJ {targets[0]}\\NoEOffs, v50, fine, tool0;",
            "    WaitTime 5; ! compare the axes with the pendant",
            *moves,
            f"    MoveAbsJ {targets[-1]}\\NoEOffs, v1000\\T:={time}, fine, tool0;",
            "  ENDPROC",
            "ENDMODULE",
            "",
        ]
        heads = ["t", *(f"joint_{j + 1}" for j in range(self.joints))]
        return {f"{stem}.mod": "\r\n".join(lines), f"{stem}-egm.csv": self.fast(playback, heads, since_start=False)}


class Fanuc(_ViaPoints):
    """A TP program as text (.ls), which a controller with the ASCII upload option, or ROBOGUIDE, translates."""

    title = "Fanuc (TP as .ls)"
    how_to_play = (
        "Load the .ls (ASCII upload option, or ROBOGUIDE) and step through it at a low override first. " + _AXES
    )
    changes = (
        "Timed joint moves (msec) with CNT100, which cuts the corners; the controller slows down if an axis cannot "
        "follow. Most Fanuc arms measure J3 from the horizontal: if the description does not, subtract J2." + _UNPROVEN
    )

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, postures = self.degrees(playback)
        name = f"{program_name(playback.robot, 20)}_{playback.percent}".upper()
        step = round(1000.0 * float(t[1]))
        moves = ["J P[1] 5% FINE", "WAIT 5.00(sec)"]
        moves += [f"J P[{k + 1}] {step}msec {'CNT100' if k < len(t) - 1 else 'FINE'}" for k in range(1, len(t))]
        lines = [
            f"/PROG  {name}",
            "/ATTR",
            "OWNER = MNEDITOR;",
            f'COMMENT = "{playback.percent} PERCENT";',
            "PROTECT = READ_WRITE;",
            "DEFAULT_GROUP = 1,*,*,*,*;",
            "/MN",
            *(f"{k + 1:4d}:  {move} ;" for k, move in enumerate(moves)),
            "/POS",
        ]
        for k, row in enumerate(postures):
            axes = [f"J{j + 1} = {x} deg" for j, x in enumerate(row)]
            lines += [f"P[{k + 1}]{{", "   GP1:", "\tUF : 0, UT : 1,", f"\t{', '.join(axes[:3])},"]
            lines += [f"\t{', '.join(axes[3:])}", "};"]
        return {f"{stem}.ls": "\r\n".join([*lines, "/END", ""])}


for _name, _target in (("kuka", Kuka()), ("abb", Abb()), ("fanuc", Fanuc())):
    MOTION_TARGETS.register(_name)(_target)
