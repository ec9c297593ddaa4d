"""A report is one self-contained page that shows its sections."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from report_pages import figures, own_part, unpacked
from synthetic_report import JOINTS, synthetic_report

from steelyard.errors import ShapeError
from steelyard.report.elements import Html, TableColumn, callout, figure_html, table_html
from steelyard.report.html import Section, render_report
from steelyard.report.plots import (
    autocorrelation,
    correlations,
    residual_map,
    residual_spectrum,
    residuals,
    singular_values,
)
from steelyard.report.plots.figure import Figure
from steelyard.report.plots.ranking import error_ranking, z_scores
from steelyard.report.plots.series import decimate, decimate_over, in_steps


@pytest.fixture(scope="module")
def page() -> str:
    return synthetic_report()


def test_nothing_is_fetched(page):
    own = own_part(page)
    assert len(own) < 0.1 * len(page)
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?\s*(https?:)?//""", own)
    assert "http:" not in own
    assert "https:" not in own
    assert "@import" not in own
    assert not re.search(r"<(link|img|iframe)\b", own)
    assert not re.search(r"<script[^>]*\bsrc=", page)


def library(page: str) -> str:
    (data,) = re.findall(r'id="plotly-js">(.*?)</script>', page)
    return unpacked(data)


def test_plotly_js_is_included_once_and_fits_the_figures(page):
    assert page.count("<script>") == 1
    assert '"scatter3d"' not in library(page)
    space = Figure(300, flat=False)
    space.add("scatter3d", x=[0.0, 1.0], y=[0.0, 1.0], z=[0.0, 1.0], name="a path")
    moving = figure_html(space, "In space")
    assert '"scatter3d"' in library(render_report("t", [Section("s", moving)]))
    bare = render_report("No figures", [Section("Text", Html("<p>only</p>"))])
    assert len(bare) < 20_000
    assert "<script" not in bare


def test_titles_units_and_legends(page):
    own = own_part(page)
    for known in ("Identification of arm7", "predicts the torque of new motions", "Errors by joint", "[%]"):
        assert known in own
    titles = re.findall(r'<section id="([^"]+)"><h2>(.*?)</h2>', own)
    assert [t for _, t in titles] == ["Prediction", "Residuals", "Friction", "Parameters", "Excitation", "Noise"]
    assert re.findall(r'<li><a href="#([^"]+)">', own) == [name for name, _ in titles]
    for figure in figures(page):
        axes = [v for k, v in figure["layout"].items() if re.fullmatch(r"[xy]axis\d*", k)]
        named = [a["title"]["text"] for a in axes if "text" in a.get("title", {})]
        assert named
        assert all("[" in n or "condition" in n for n in named), named
        assert any(trace.get("showlegend") and trace["name"] for trace in figure["data"])
    first = figures(page)[0]
    assert [a["text"] for a in first["layout"]["annotations"]] == list(JOINTS)
    assert {t["name"] for t in first["data"]} == {"measured", "predicted", "95 % band", "standing"}


def test_styles_for_phones_and_dark_mode(page):
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media (max-width: 800px)" in page


def test_text_is_escaped(page):
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;" in table_html(["a"], [["<b>"]])
    assert "&lt;b&gt;" in callout("bad", "<b>")
    figure = residuals(np.arange(3.0), np.zeros((3, 1)), ["</script><b>"])
    assert "</script><b>" not in figure_html(figure, "x")


def test_the_same_sections_give_the_same_bytes(page):
    assert synthetic_report() == page


def test_sections_of_the_same_title_get_unique_anchors():
    text = render_report("t", [Section("Joint 1", Html("a")), Section("Joint 1", Html("b")), Section("…", Html("c"))])
    assert re.findall(r'<section id="([^"]+)"', text) == ["joint-1", "joint-1-2", "section"]


def test_tables_show_few_digits_and_all_digits_on_hover():
    made = table_html(
        [TableColumn("mass", "kg", digits=3), "known", "note"], [[1.23456, True, None], [np.nan, False, "x"]]
    )
    assert '<td class="number" title="1.23456">1.23</td>' in made
    assert '<span class="unit">[kg]</span>' in made
    assert "<td>yes</td><td>–</td>" in made


def test_numpy_numbers_are_numbers():
    made = table_html(["a", "b"], [[np.float64(0.5), np.int64(3)]])
    assert '<td class="number" title="0.5">0.5</td><td class="number" title="3">3</td>' in made


@pytest.mark.parametrize("samples", [10, 4000, 4001, 100_000])
def test_spikes_survive_thinning(samples):
    y = np.zeros(samples)
    y[samples // 3], y[samples // 2] = 5.0, -7.0
    keep = decimate(y)
    assert len(keep) <= 4000
    assert np.all(np.diff(keep) > 0)
    assert (keep[0], keep[-1]) == (0, samples - 1)
    assert {5.0, -7.0} <= set(y[keep])
    x = np.random.default_rng(0).permutation(samples)
    cloud = decimate_over(x, y)
    assert len(cloud) <= 4000
    assert {5.0, -7.0} <= set(y[cloud])


def test_thinning_ignores_nan():
    y = np.full(10_000, np.nan)
    y[5000:] = np.arange(5000.0)
    assert np.nanmax(y[decimate(y)]) == 4999.0


def test_autocorrelation_of_white_noise_and_of_a_sine():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20_000)
    sine = np.sin(2 * np.pi * np.arange(20_000) / 100.0)
    rho = autocorrelation(np.column_stack([noise, sine, np.ones(20_000)]), 100)
    assert np.all(np.abs(rho[1:, 0]) < 4.0 / np.sqrt(20_000))
    # One period later the sine repeats, except for 100 of 20000 products that are missing.
    assert rho[100, 1] == pytest.approx(1.0 - 100 / 20_000, abs=1e-3)
    assert rho[50, 1] == pytest.approx(-1.0, abs=5e-3)
    assert np.all(rho[:, 2] == 0.0)  # a constant gives zero, not 0/0


def test_a_sine_in_noise_is_a_peak_of_the_spectrum():
    """White noise of standard deviation σ has an amplitude density of σ √(2/rate)."""
    rng = np.random.default_rng(0)
    t = np.arange(40_000) / 200.0
    noise = 0.5 * rng.normal(size=t.size)
    figure = residual_spectrum(noise + np.sin(2 * np.pi * 25.0 * t), noise, 200.0, ["a"])
    measured, left = ({"x": np.array(trace["x"]), "y": np.array(trace["y"])} for trace in figure.data)
    assert np.median(measured["y"]) == pytest.approx(0.5 * np.sqrt(2.0 / 200.0), rel=0.05)
    assert left["x"][np.argmax(left["y"])] == pytest.approx(25.0, abs=0.5)
    assert left["y"].max() > 10.0 * np.median(left["y"])


def test_a_map_has_the_mean_of_each_cell_and_gaps_without_samples():
    rng = np.random.default_rng(0)
    q, dq = rng.uniform(-1.0, 1.0, (2, 20_000, 1))
    keep = np.flatnonzero(~((q[:, 0] > 0.5) & (dq[:, 0] > 0.5)))
    q, dq = q[keep], dq[keep]
    (trace,) = residual_map(q, dq, np.sign(q), ["a"]).data
    z = np.array([[np.nan if v is None else v for v in row] for row in trace["z"]])
    assert np.all(z[:6, :12] == -1.0)  # rows are velocities, columns positions
    assert np.all(z[:6, 12:] == 1.0)
    assert np.all(np.isnan(z[-5:, -5:]))


def test_correlations_are_those_of_the_covariance():
    (trace,) = correlations(["a", "b"], [[4.0, -3.0], [-3.0, 9.0]]).data
    assert trace["z"] == [[1.0, -0.5], [-0.5, 1.0]]


def test_honest_error_bars_follow_the_line():
    """The share of each bin follows the normal distribution; a bin has at most 20 % of 40,000 scores, ± 0.2 %."""
    rng = np.random.default_rng(0)
    figure = z_scores({"seed 0": rng.normal(size=20_000), "seed 1": rng.normal(size=20_000)})
    *bars, line = figure.data
    assert np.allclose(np.add(*(np.array(bar["y"]) for bar in bars)), line["y"], atol=0.7)
    assert sum(np.sum(bar["y"]) for bar in bars) == pytest.approx(100.0, abs=0.01)
    assert error_ranking(["a", "b"], [2.0, 4.0], "error [%]", "a").data[0]["name"] == "best"
    assert error_ranking(["a", "b"], [0.2, 400.0], "error [%]").axis("x")["type"] == "log"


def test_bad_shapes_are_named():
    with pytest.raises(ShapeError, match="residual has shape"):
        residuals(np.arange(3.0), np.zeros((3, 2)), ["a"])
    figure = singular_values([3.0, 0.0])
    assert "infinite" in figure.axis("x")["title"]["text"]


def test_gaps_and_numpy_numbers_are_written():
    figure = Figure(300)
    figure.add("scatter", x=np.array([1.0, np.nan, 1.23456789]), y=[np.float64(1.0), np.int64(2), float("inf")])
    (trace,) = json.loads(figure.json())["data"]
    assert trace["x"] == [1.0, None, 1.23457]
    assert trace["y"] == [1.0, 2, None]


@pytest.mark.parametrize("size", [1e-9, 0.3, 50.0, 4e7])
def test_steps_are_finer_than_a_screen(size):
    y = size * np.random.default_rng(0).uniform(size=500) + 0.1 * size
    assert np.max(np.abs(np.array(in_steps(y)) - y)) < 0.5 * size / 20_000
    assert in_steps([2.0, 2.0]) == [2.0, 2.0]


def test_a_usual_run_is_small_and_does_not_need_plotly(tmp_path):
    """A report of six axes and one hold-out log stays below 2 MB and is made without plotly."""
    code = "import sys; sys.modules['plotly'] = None; from steelyard.demo import run_demo; run_demo(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)
    written = tmp_path / "run" / "report.html"
    assert written.stat().st_size <= 2_000_000
    assert len(figures(written.read_text("utf-8"))) == 11
