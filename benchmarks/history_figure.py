"""A figure of fitness histories, as a small SVG file that needs no library to draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLOURS = {"genetic": "#0072B2", "cma": "#D55E00", "gradient": "#009E73"}
WIDTH, HEIGHT, LEFT, TOP = 250, 200, 48, 34


def history_figure(regions: dict[str, Any], path: str) -> None:
    """One panel per region: best fitness over evaluations, one line per optimiser."""
    values = [v for found in regions.values() for way in found.values() for _, v in way["history"]]
    most = max(n for found in regions.values() for way in found.values() for n, _ in way["history"])
    low, high = min(values), max(values)
    parts = []
    for k, (name, found) in enumerate(regions.items()):
        x0 = LEFT + k * (WIDTH + 30)
        parts.append(f'<rect x="{x0}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>')
        parts.append(f'<text x="{x0}" y="{TOP - 8}">region {name}</text>')
        for way, line in found.items():
            points = " ".join(
                f"{x0 + WIDTH * n / most:.1f},{TOP + HEIGHT * (high - v) / (high - low):.1f}"
                for n, v in line["history"]
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[way]}" stroke-width="1.6"/>')
        parts.append(f'<text x="{x0 + WIDTH}" y="{TOP + HEIGHT + 16}" text-anchor="end">{most} evaluations</text>')
    for value in (low, (low + high) / 2, high):
        y = TOP + HEIGHT * (high - value) / (high - low)
        parts.append(f'<text x="{LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{value:.0f}</text>')
    for k, (way, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + 90 * k}" y="{TOP + HEIGHT + 40}" fill="{colour}">{way}</text>')
    total = LEFT + len(regions) * (WIDTH + 30)
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {TOP + HEIGHT + 52}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n',
        encoding="utf-8",
    )
