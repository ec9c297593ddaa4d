"""Small SVG pictures of runs, with text alternatives for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.report.elements import Html, text
from steelyard.studio.page import attribute

# Width, height and margin [px].
_WIDE, _HIGH, _EDGE = 150, 64, 5
_MOST = 60
Points = Sequence[tuple[float, float]]


def bars_thumbnail(words: str, values: Sequence[float], before: Sequence[float] = (), mark: float = 0.0) -> Html:
    """Draw bars.

    Args:
        words: Text alternative.
        values: Positive heights.
        before: Earlier values, drawn behind the bars.
        mark: Height of a horizontal line; 0 for none.
    """
    visible = [(value, before[k] if k < len(before) else 0.0) for k, value in enumerate(values[:_MOST])]
    # Earlier values may be 100 times larger; cut them off so that the bars stay visible.
    top = max([value for value, _ in visible] + [mark, min(max(before, default=0.0), 3.0 * max(values, default=0.0))])
    if not visible or top <= 0.0:
        return sign_thumbnail(words, "–")
    step = (_WIDE - 2 * _EDGE) / len(visible)
    room, parts = _HIGH - 2 * _EDGE, []
    for k, (value, old) in enumerate(visible):
        x = _EDGE + k * step
        if old > 0.0:
            parts.append(_bar("old", x + 0.1 * step, 0.8 * step, room * min(old / top, 1.0)))
        parts.append(_bar("found", x + 0.22 * step, 0.56 * step, room * max(min(value / top, 1.0), 0.02)))
    if mark > 0.0:
        y = _HIGH - _EDGE - room * mark / top
        parts.append(f'<path class="mark" d="M{_EDGE} {y:.1f}H{_WIDE - _EDGE}"/>')
    return _picture(words, "".join(parts))


def curve_thumbnail(words: str, points: Points, dots: bool = False) -> Html:
    """Draw a curve.

    Args:
        words: Text alternative.
        points: Its points (x, y).
        dots: Whether to draw dots instead of a line.
    """
    visible = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)][:2000]
    if len(visible) < 2:
        return sign_thumbnail(words, "–")
    across, up = _scale([x for x, _ in visible], _WIDE), _scale([y for _, y in visible], _HIGH)
    pixels = [(x, _HIGH - y) for x, y in zip(across, up, strict=True)]
    if dots:
        return _picture(words, "".join(f'<circle class="found" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>' for x, y in pixels))
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in pixels)
    return _picture(words, f'<path class="line" d="M{path}"/>')


def sign_thumbnail(words: str, sign: str) -> Html:
    """Draw a few large letters.

    Args:
        words: Text alternative.
        sign: The letters.
    """
    size = min(26.0, 1.6 * _WIDE / max(len(sign), 1))
    return _picture(
        words,
        f'<text x="{_WIDE / 2}" y="{_HIGH / 2}" font-size="{size:.0f}">{text(" ".join(sign.split())[:24])}</text>',
    )


def _bar(kind: str, x: float, width: float, height: float) -> str:
    y = _HIGH - _EDGE - height
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _scale(values: Sequence[float], size: int) -> list[float]:
    low, high = min(values), max(values)
    room = size - 2 * _EDGE
    return [_EDGE + room * ((v - low) / (high - low) if high > low else 0.5) for v in values]


def _picture(words: str, inside: str) -> Html:
    return Html(
        f'<svg class="thumb" viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{attribute(words)}">{inside}</svg>'
    )
