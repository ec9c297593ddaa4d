"""A study computes once what many ask for, and one pass over a long log says what several would."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard import study as study_module
from steelyard.assessment.score import score_models, score_reduced
from steelyard.check import _evidence
from steelyard.check._evidence import gather
from steelyard.cutoff import choose_cutoff
from steelyard.demo import simulated_log
from steelyard.ground.arrays import quick_length
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.parameters.terms import Terms
from steelyard.regression.block_rows import align_rows, stretches, tables
from steelyard.regression.rows import Equation, Rows
from steelyard.regression.spectra import Spectra
from steelyard.signals import source
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile, open_log
from steelyard.study import Study

TRUTH = sy.Model.nominal(sy.load_robot("rotradi"))
ROBOT = TRUTH.robot


@pytest.fixture(scope="module")
def log() -> Log:
    return simulated_log(TRUTH, seed=1)


@pytest.fixture(scope="module")
def long_file(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.csv"
    assert log.dq is not None
    assert log.tau is not None
    head = ["t", *(f"{x}{k + 1}" for x in ("q", "dq", "tau") for k in range(ROBOT.dof))]
    table = np.column_stack([log.t, log.q, log.dq, log.tau])
    np.savetxt(path, table, delimiter=",", header=",".join(head), comments="", fmt="%.17g")
    return path


def test_every_log_is_prepared_once(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check, fit, error bars, scores and what the report shows: one filtering of each log."""
    prepared: list[int] = []
    whole = study_module.prepare

    def counted(piece: Log, *rest: Any, **options: Any) -> Any:
        prepared.append(len(piece))
        return whole(piece, *rest, **options)

    monkeypatch.setattr(study_module, "prepare", counted)
    other = simulated_log(TRUTH, seed=2)
    found = identify(ROBOT, log, [other])
    assert found.checks
    assert found.validation
    assert prepared == [len(log), len(other)]


def test_a_result_computes_nothing(log: Log) -> None:
    found = identify(ROBOT, log)
    assert not [name for name, member in vars(Identification).items() if isinstance(member, cached_property)]
    again = pickle.loads(pickle.dumps(found))
    assert again.verdict == found.verdict
    assert again.checks == found.checks
    assert len(pickle.dumps(found)) < 20 * log.q.nbytes, "the logs themselves are not part of a result"


def test_a_log_in_pieces_gives_the_estimate_of_the_whole(
    long_file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = sy.Preparation(cutoff_hz=9.7)
    # The structure is found by the first piece of a long log, so the terms are fixed here.
    whole = identify(ROBOT, log, preparation=cut, plain=True)
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 1)
    monkeypatch.setattr(source, "PIECE_ROWS", len(log) // 3)
    streamed = open_log(long_file, ROBOT)
    assert isinstance(streamed, LogFile)
    parts = identify(ROBOT, streamed, preparation=cut, plain=True)
    # At the borders of three pieces some rows are cut away: of all rows as many percent as the estimate may move by.
    lost = 1.0 - parts.estimate.details["rows"][0] / whole.estimate.details["rows"][0]
    assert 0.0 < lost < 0.1
    moved = np.abs(parts.free.beta - whole.free.beta) / whole.free.standard_errors
    assert np.median(moved) < 3.0 * np.sqrt(lost)
    for a, b in zip(parts.identification[0].joints, whole.identification[0].joints, strict=True):
        assert a.rmse == pytest.approx(b.rmse, rel=0.05)


def test_one_pass_has_the_scores_of_a_second(
    long_file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 1)
    monkeypatch.setattr(source, "PIECE_ROWS", len(log) // 2)
    streamed = open_log(long_file, ROBOT)
    study = Study.of(ROBOT, streamed)
    theta = np.concatenate([TRUTH.robot.inertial_parameters, 1.0 + np.arange(len(study.terms.parameters))])
    models = [sy.Model(study.robot, study.terms, theta)]
    seen = study.parts[0].reduction()
    (once,) = score_reduced(models, study.base, seen, study.first_motions(0), study.cutoff_hz)
    (twice,) = score_models(models, study.motions_of(streamed), study.cutoff_hz)
    for a, b in zip(once.joints, twice.joints, strict=True):
        # Filtered: every fifth of a period of the cut-off fixes all except the ends. Unfiltered: a sample of the rows.
        assert a.rmse == pytest.approx(b.rmse, rel=2e-3)
        assert a.raw["rmse"] == pytest.approx(b.raw["rmse"], rel=5.0 / np.sqrt(seen.factor.rows[0]))


def test_the_pass_keeps_the_rows_that_the_check_looks_at(
    long_file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 1)
    monkeypatch.setattr(source, "PIECE_ROWS", len(log) // 3)
    study = Study.of(ROBOT, open_log(long_file, ROBOT))
    anew = gather(study, 0)
    study.rows.reduction()
    monkeypatch.setattr(_evidence, "observe", None)  # nothing is computed twice
    kept = gather(study, 0)
    assert len(kept.y[0]) == len(study.first_motions(0)[0].t[study.first_motions(0)[0].keep])
    for a, b in zip((*kept.A, *kept.y), (*anew.A, *anew.y), strict=True):
        # Beyond its reach, where chunks end, the filter still has 1e-9 of its weight.
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())


def test_base_parameters_are_found_once(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check, band, search, fit and files ask for those of the usual terms; the URDF, without rotors, for others.

    Error bars of the files need those with rounder friction.
    """
    asked: list[tuple[Any, ...]] = []
    whole = study_module.base_parameters

    def counted(robot: sy.Robot, terms: Terms) -> Any:
        asked.append(terms.terms)
        return whole(robot, terms)

    monkeypatch.setattr(study_module, "base_parameters", counted)
    identify(ROBOT, log)
    assert len(asked) == len(set(asked))


def test_rows_stay_where_the_terms_do(log: Log) -> None:
    study = Study.of(ROBOT, log)
    rows = study.rows
    assert study.with_terms(Terms(ROBOT, study.terms.terms), TRUTH).rows is rows
    assert study.with_terms(Terms(ROBOT, study.terms.terms[:-1]), TRUTH).rows is not rows


def test_the_rows_of_the_band_are_those_of_the_search(log: Log) -> None:
    study = Study.of(ROBOT, log)
    study = choose_cutoff(replace(study, preparation=study.preparation.for_rows(torques=True, one_by_one=True)))
    assert study.band is not None
    assert study.band.is_ceiling  # a clean log
    motions = [m for m in study.first_motions(0) if m.long_enough]
    given = list(study.take_tables(motions))
    rows = Rows(study.dynamics, study.base.independent)
    parts = [part for some in stretches([align_rows(m) for m in motions]) for _, part in some]
    assert len(given) == len(parts) > 0
    for one, part in zip(given, parts, strict=True):
        for ours, theirs in zip(one, tables(study.dynamics, study.base, rows, part), strict=True):
            # The same sums; a second kernel may round otherwise.
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert list(study.take_tables(motions)) == []  # given away once


def test_a_changed_setting_is_another_preparation(log: Log) -> None:
    study = Study.of(ROBOT, log)
    slower = study.prepared_as(sy.Preparation(cutoff_hz=0.5 * study.cutoff_hz))
    assert slower.first_motions(0)[0].filter.cutoff_hz == pytest.approx(0.5 * study.cutoff_hz)
    assert study.first_motions(0)[0].filter.cutoff_hz == pytest.approx(study.cutoff_hz)


def test_spectra_add_up_to_the_gram_matrix() -> None:
    """Parseval: the transform is unitary, whatever the length of the blocks."""
    rng = np.random.default_rng(0)
    spectra = Spectra((Equation("joint", np.arange(3)),))
    blocks = [rng.normal(size=(n, 4)) for n in (7, 100, 1001)]
    for block in blocks:
        spectra.add(0, block)
    rows = np.vstack(blocks)
    np.testing.assert_allclose(sum(spectra.grams.values()), rows.T @ rows, rtol=1e-12, atol=1e-10)
    assert sum(spectra.counts.values()) == pytest.approx(len(rows))


@pytest.mark.parametrize(("most", "quick"), [(1052, 1050), (1024, 1024), (11, 10), (1, 1)])
def test_quick_lengths(most: int, quick: int) -> None:
    assert quick_length(most) == quick
