"""Figures of contact as small SVG files that need no library to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

COLOURS = {"observer": "#0072B2", "plain": "#D55E00", "plain, low-passed": "#009E73"}
WIDTH, HEIGHT, LEFT, TOP = 260, 200, 48, 30


def _write(path: str, width: float, height: float, parts: list[str]) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )


def curves_figure(curve: dict[str, Any], path: str) -> None:
    """Share of planted contacts that are found over false alarms an hour, a panel for each strength."""
    strengths = list(next(iter(curve["ways"].values()))["found"])
    parts = []
    low, high = 1.0, 3000.0  # false alarms an hour; none at all is drawn at the left edge
    for k, newtons in enumerate(strengths):
        x0 = LEFT + k * (WIDTH + 34)
        parts.append(f'<rect x="{x0}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>')
        parts.append(f'<text x="{x0}" y="{TOP - 8}">pushes of {newtons} N</text>')
        for way, colour in COLOURS.items():
            # Where limits are so low that every other second alarms, contacts do not stand out, and the curve ends.
            false = np.array(curve["ways"][way]["false_per_hour"])
            share = np.array(curve["ways"][way]["found"][newtons]["share"])
            false, share = false[false < 1800.0], share[false < 1800.0]
            x = x0 + WIDTH * np.log(np.clip(false, low, high) / low) / np.log(high / low)
            points = " ".join(f"{a:.1f},{TOP + HEIGHT * (1.0 - b):.1f}" for a, b in zip(x, share, strict=True))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        for value in (1.0, 10.0, 100.0, 1000.0):
            x = x0 + WIDTH * np.log(value / low) / np.log(high / low)
            label = "≤ 1" if value == 1.0 else f"{value:g}"
            parts.append(f'<text x="{x:.0f}" y="{TOP + HEIGHT + 15}" text-anchor="middle">{label}</text>')
    for value in (0, 50, 100):
        parts.append(
            f'<text x="{LEFT - 5}" y="{TOP + HEIGHT * (1 - value / 100) + 4:.0f}" text-anchor="end">{value} %</text>'
        )
    bottom = TOP + HEIGHT + 36
    parts.append(f'<text x="{LEFT}" y="{bottom}">found, over seconds an hour with a false alarm</text>')
    for k, (way, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + 330 + 130 * k}" y="{bottom}" fill="{colour}">{way}</text>')
    _write(path, LEFT + len(strengths) * (WIDTH + 34), bottom + 12, parts)


def records_figure(batch: Any, shares: dict[str, Any], onsets: list[float], events: list[Any], path: str) -> None:
    """A record of pushes: measured torques of four joints, and the share of its limit that each way reaches."""
    t = batch.t - batch.t[0]
    wide, high = 860, 84
    rows = [(f"torque of joint {j + 1}, N m", [("#444", batch.tau[:, j])]) for j in range(4)]
    rows.append(("share of the limit", [(COLOURS[w], np.minimum(shares[w], 4.0)) for w in COLOURS]))
    parts = []
    for k, (title, lines) in enumerate(rows):
        y0 = 8 + k * (high + 10)
        values = np.concatenate([y for _, y in lines])
        low, top = float(values.min()), float(values.max())
        parts.append(f'<rect x="{LEFT}" y="{y0}" width="{wide}" height="{high}" fill="none" stroke="#bbb"/>')
        for begin in onsets:
            x = LEFT + wide * begin / t[-1]
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y0}" y2="{y0 + high}" stroke="#bbb"/>')
        for event in events:
            x = LEFT + wide * (event.detail["found"] - batch.t[0]) / t[-1]
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y0}" y2="{y0 + high}" stroke="#0072B2" stroke-dasharray="3 2"/>'
            )
        for colour, y in lines:
            xs, ys = LEFT + wide * t / t[-1], y0 + high * (top - y) / max(top - low, 1e-9)
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs[::2], ys[::2], strict=True))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
        parts.append(f'<text x="{LEFT + 6}" y="{y0 + 13}">{title}</text>')
        for value, y in ((top, y0 + 10), (low, y0 + high)):
            parts.append(f'<text x="{LEFT - 4}" y="{y}" text-anchor="end">{value:.3g}</text>')
    bottom = 8 + len(rows) * (high + 10) + 8
    parts.append(f'<text x="{LEFT}" y="{bottom}">0 … {t[-1]:.0f} s; grey: visible onset, dashed: found</text>')
    for k, (way, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + 360 + 130 * k}" y="{bottom}" fill="{colour}">{way}</text>')
    _write(path, LEFT + wide + 10, bottom + 10, parts)
