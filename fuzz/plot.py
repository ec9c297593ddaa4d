"""What a campaign has done: python -m fuzz.plot STATE [--write]. Prints counts per reader, and draws edges over inputs.

With --write the table goes into docs/reliability.md, between its two marks, and the figure into docs/images.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

PAGE, IMAGE = Path("docs/reliability.md"), Path("docs/images/fuzz-coverage.svg")
MARKS = "<!-- counts of the campaign -->", "<!-- end of the counts -->"
ACROSS, WIDTH, HEIGHT, LEFT, TOP, GAP = 5, 150, 70, 44, 30, 46
LOWEST = 0.6  # of the most edges seen, where the panels begin


@dataclass(frozen=True)
class Counts:
    """Of one reader: inputs tried, those that were read, findings, and edges (pairs of lines) after so many inputs."""

    name: str
    inputs: int
    read: int
    findings: int
    edges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, folder: Path) -> Counts:
        """From the state that `fuzz.run` keeps in a reader's folder."""
        state = json.loads((folder / "state.json").read_text())
        edges = tuple(sorted((int(inputs), int(edges)) for inputs, edges in state["edges"]))
        return cls(folder.name, int(state["inputs"]), int(state["read"]), len(state["findings"]), edges)

    @property
    def last(self) -> int:
        return self.edges[-1][1]

    @property
    def late(self) -> str:
        """Share of the edges that the second half of the inputs found; a dash where fewer are counted now than then."""
        early = max((edges for inputs, edges in self.edges if inputs <= self.inputs / 2), default=0)
        return f"{100.0 * (self.last - early) / max(self.last, 1):.1f} %" if self.last >= early else "–"


def all_counts(state: Path) -> list[Counts]:
    """Of every reader of a campaign, the most tried first."""
    found = [Counts.of(path.parent) for path in state.glob("*/state.json")]
    return sorted((c for c in found if c.edges), key=lambda c: (-c.inputs, c.name))


def table(counts: list[Counts]) -> str:
    """Inputs, edges and findings of every reader, in Markdown."""
    rows = [f"| {c.name} | {c.inputs:,} | {c.read:,} | {c.last:,} | {c.late} | {c.findings} |" for c in counts]
    sums = [f"{sum(getattr(c, name) for c in counts):,}" for name in ("inputs", "read", "findings")]
    return "\n".join(
        [
            "| reader | inputs | read | edges | of these in the second half | findings |",
            "|---|---|---|---|---|---|",
            *rows,
            f"| **all {len(counts)}** | {sums[0]} | {sums[1]} | | | {sums[2]} |",
        ]
    )


def figure(counts: list[Counts]) -> str:
    """A panel per reader: the share of the most edges it has seen that were seen after so many inputs."""
    parts = []
    for k, c in enumerate(counts):
        x0, y0 = LEFT + k % ACROSS * (WIDTH + 22), TOP + k // ACROSS * (HEIGHT + GAP)
        most = max(edges for _, edges in c.edges)
        points = " ".join(
            f"{x0 + WIDTH * inputs / c.inputs:.1f},{y0 + HEIGHT * (1.0 - _place(edges / most)):.1f}"
            for inputs, edges in c.edges
        )
        parts += [
            f'<rect x="{x0}" y="{y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>',
            f'<text x="{x0}" y="{y0 - 6}" font-weight="bold">{c.name}</text>',
            f'<text x="{x0}" y="{y0 + HEIGHT + 14}">{c.inputs:,} inputs, {most:,} edges</text>',
            f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.6"/>',
        ]
        if k % ACROSS == 0:
            for share in (LOWEST, 0.8, 1.0):
                y = y0 + HEIGHT * (1.0 - _place(share))
                parts.append(f'<text x="{x0 - 5}" y="{y + 4:.1f}" text-anchor="end">{100 * share:.0f} %</text>')
    width = LEFT + ACROSS * (WIDTH + 22)
    height = TOP + -(-len(counts) // ACROSS) * (HEIGHT + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _place(share: float) -> float:
    return max(share - LOWEST, 0.0) / (1.0 - LOWEST)


def with_table(page: str, made: str) -> str:
    """The text of a page with what stands between its marks replaced."""
    first, last = map(re.escape, MARKS)
    out, times = re.subn(f"({first}\n).*?({last})", lambda m: f"{m[1]}{made}\n{m[2]}", page, flags=re.DOTALL)
    if times != 1:
        raise SystemExit(f"{PAGE} has no marks {MARKS[0]} … {MARKS[1]}.")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz.plot", description=__doc__)
    parser.add_argument("state", type=Path, help="the campaign's folder, such as build/fuzz")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE} and {IMAGE}")
    given = parser.parse_args()
    counts = all_counts(given.state)
    if not counts:
        raise SystemExit(f"{given.state}: there is no campaign in it.")
    made = table(counts)
    print(made)
    if given.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
        IMAGE.write_text(figure(counts), encoding="utf-8")


if __name__ == "__main__":
    main()
