"""uPlot and the studio's plot of logs on the same data: `python benchmarks/plot_core.py FOLDER [SAMPLES …]`.

FOLDER is the unpacked `dist` of uPlot (`npm pack uplot`). Both draw six joints with three signals each in a headless
Chromium on this machine; panning moves by 1 % of the window at every frame for five seconds.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
from studio import JOINTS, PAN, ROBOT, long_log, studio

OWN = Path(__file__).parents[1] / "src/steelyard/studio/assets"
OWN_SCRIPTS = ("tiles.js", "strips.js", "plot.js", "plot_parts.js", "plot.css")
SHARES = (0.5, 0.1, 0.01)
# Three charts, one per signal, as panels of one time axis; data of the same shape as `long_log`.
_UPLOT = """async ([samples, joints, share]) => {
  if (!window.charts) {
    const begin = performance.now(), t = new Float64Array(samples);
    for (let k = 0; k < samples; k++) { t[k] = 1e-3 * k; }
    window.charts = [0, 1, 2].map(signal => {
      const columns = [];
      for (let j = 0; j < joints; j++) {
        const x = new Float64Array(samples);
        for (let k = 0; k < samples; k++) {
          x[k] = (1 + j) * Math.sin(0.3 * (j + 1) * t[k] + signal) + 0.1 * Math.random();
        }
        columns.push(x);
      }
      const colours = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"];
      const series = [{}].concat(columns.map((_, j) => ({ stroke: colours[j] })));
      return [series, columns];
    });
    window.made = performance.now() - begin;
    const drawing = performance.now();
    window.charts = window.charts.map(([series, columns]) => new uPlot(
      { width: 1100, height: 150, series: series, legend: { show: false }, scales: { x: { time: false } } },
      [Float64Array.from({ length: samples }, (_, k) => 1e-3 * k)].concat(columns), document.body));
    await new Promise(requestAnimationFrame);
    window.first = performance.now() - drawing;
  }
  const span = 1e-3 * samples * share, steps = [];
  let from = 0.3 * (1e-3 * samples - span);
  const begin = performance.now();
  for (let last = begin; last - begin < 5000;) {
    from = (from + 0.01 * span) % (1e-3 * samples - span);
    window.charts.forEach(chart => chart.setScale("x", { min: from, max: from + span }));
    const now = await new Promise(requestAnimationFrame);
    steps.push(performance.now() - last);
    last = performance.now();
  }
  return { steps, first: window.first, heap: performance.memory.usedJSHeapSize / 1e6 };
}"""


def shown(name: str, share: float, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    steps = np.array(found["steps"])
    rate, late = 1000.0 * len(steps) / steps.sum(), np.quantile(steps, 0.95)
    return f"  {name:8} {share:6.0%} in the window: {rate:5.1f} frames/s, 95 % within {late:4.0f} ms"


def measure(dist: Path, samples: int) -> None:
    """Measure both with a number of samples per column."""
    print(f"{samples:,} samples, {JOINTS} joints, 3 signals")
    with studio(f'robot = "{ROBOT}"\n[logs]\nidentify = ["logs/long.parquet"]\n') as (folder, _, page):
        (folder / "logs").mkdir()
        long_log(folder / "logs/long.parquet", samples)
        begin = time.monotonic()
        page.goto(page.url.rstrip("/").rpartition("/")[0] + "/data")
        page.locator(".plot-values td").first.wait_for(timeout=180_000)
        print(f"  ours: drawn {time.monotonic() - begin:.1f} s after the page was asked for, the file read included")
        for share in SHARES:
            print(shown("ours", share, page.evaluate(PAN, share)))
        heap = page.evaluate("performance.memory.usedJSHeapSize / 1e6")
        print(f"  ours: {heap:.0f} MB of JavaScript's memory")
        page.goto("about:blank")
        page.add_style_tag(path=str(dist / "uPlot.min.css"))
        page.add_script_tag(path=str(dist / "uPlot.iife.min.js"))
        for share in SHARES:
            found = page.evaluate(_UPLOT, [samples, JOINTS, share])
            if share == SHARES[0]:
                print(f"  uPlot: first picture after {found['first']:.0f} ms, data in memory already")
            print(shown("uPlot", share, found))
        print(f"  uPlot: {found['heap']:.0f} MB of JavaScript's memory")


def packed(paths: list[Path]) -> str:
    """Return the size of files, as they are and packed with gzip."""
    data = b"".join(path.read_bytes() for path in paths)
    return f"{len(data) / 1e3:.0f} kB, {len(gzip.compress(data)) / 1e3:.0f} kB packed"


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("dist", type=Path, metavar="FOLDER")
    words.add_argument("samples", nargs="*", type=int, metavar="SAMPLES", default=[10_000, 200_000, 1_000_000])
    given = words.parse_args()
    print(f"ours: {packed([OWN / name for name in OWN_SCRIPTS])}")
    print(f"uPlot: {packed([given.dist / name for name in ('uPlot.iife.min.js', 'uPlot.min.css')])}")
    for count in given.samples:
        measure(given.dist, count)
