"""A file, pandas, polars, xarray, Arrow and a dict of arrays give the same log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard import Log, load_robot, read_log
from steelyard.errors import LogError
from steelyard.robot import Robot
from steelyard.signals.as_logs import as_log, as_logs, as_sources, log_label

N, RATE = 400, 200.0
RNG = np.random.default_rng(5)
T = np.arange(N) / RATE
Q, DQ, TAU = RNG.normal(size=(3, N, 2))
Maker = Callable[[Any], Any]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return _two()


def _two() -> Robot:
    robot = load_robot("rotradi")
    return robot.with_joints(robot.joint_names[:2])


def table(names: tuple[str, ...] = ("1", "2")) -> dict[str, np.ndarray]:
    signals = {"q": Q, "dq": DQ, "tau": TAU}
    return {"t": T} | {f"{s}{n}": x[:, k] for s, x in signals.items() for k, n in enumerate(names)}


def _pandas(pd: Any) -> Any:
    return pd.DataFrame(table())


def _pandas_index(pd: Any) -> Any:
    """The time is an unnamed index in seconds."""
    return pd.DataFrame({k: v for k, v in table().items() if k != "t"}, index=T)


def _pandas_stamps(pd: Any) -> Any:
    when = pd.Timestamp("2026-03-01", tz="Europe/Berlin") + pd.to_timedelta(T, unit="s")
    return pd.DataFrame({k: v for k, v in table().items() if k != "t"}, index=when)


def _pandas_durations(pd: Any) -> Any:
    return pd.DataFrame(table() | {"t": pd.to_timedelta(T, unit="s")})


def _pandas_levels(pd: Any) -> Any:
    """Signal and joint are two levels of the columns."""
    names = _two().joint_names
    columns = pd.MultiIndex.from_product([["q", "dq", "tau"], names])
    return pd.DataFrame(np.hstack([Q, DQ, TAU]), columns=columns, index=pd.Index(T, name="time"))


def _polars(pl: Any) -> Any:
    return pl.DataFrame(table())


def _polars_lazy(pl: Any) -> Any:
    return pl.LazyFrame(table())


def _polars_lists(pl: Any) -> Any:
    """One column of arrays per signal, as in robot data sets."""
    shape = {"q": pl.Array(pl.Float64, 2), "dq": pl.List(pl.Float64), "tau": pl.Array(pl.Float64, 2), "t": pl.Float64}
    return pl.DataFrame({"t": T, "q": Q, "dq": DQ.tolist(), "tau": TAU}, schema_overrides=shape)


def _xarray(xr: Any) -> Any:
    along = {"q": (("time", "joint"), Q), "dq": (("time", "joint"), DQ), "tau": (("joint", "time"), TAU.T)}
    return xr.Dataset(along, coords={"time": T, "joint": list(_two().joint_names)})


def _xarray_numbered(xr: Any) -> Any:
    return xr.Dataset(
        {"q": (("time", "axis"), Q), "dq": (("time", "axis"), DQ), "tau": (("time", "axis"), TAU)}, {"time": T}
    )


def _xarray_array(xr: Any) -> Any:
    columns = {k: v for k, v in table().items() if k != "t"}
    values, names = np.column_stack(list(columns.values())), list(columns)
    return xr.DataArray(values, dims=("t", "signal"), coords={"t": T, "signal": names})


def _arrow(pa: Any) -> Any:
    return pa.table(table())


FRAMES = [
    ("pandas", _pandas), ("pandas", _pandas_index), ("pandas", _pandas_stamps), ("pandas", _pandas_durations),
    ("pandas", _pandas_levels), ("polars", _polars), ("polars", _polars_lazy), ("polars", _polars_lists),
    ("xarray", _xarray), ("xarray", _xarray_numbered), ("xarray", _xarray_array), ("pyarrow", _arrow),
]  # fmt: skip


def same(log: Log, robot: Robot) -> None:
    assert log.joints == robot.joint_names
    np.testing.assert_allclose(log.t, T, atol=1e-9)  # nanoseconds for time stamps
    for ours, given in zip((log.q, log.dq, log.tau), (Q, DQ, TAU), strict=True):
        np.testing.assert_array_equal(ours, given)


@pytest.mark.parametrize(("library", "make"), FRAMES, ids=[make.__name__.strip("_") for _, make in FRAMES])
def test_frames_give_the_same_log(library: str, make: Maker, robot: Robot) -> None:
    frame = make(pytest.importorskip(library))
    same(read_log(frame, robot), robot)
    same(as_log(frame, robot), robot)


@pytest.mark.parametrize(
    "given",
    [
        table(),
        {"t": T, "q": Q, "dq": DQ, "tau": TAU},
        {"t": T.tolist(), "q": Q.T, "dq": DQ.T, "tau": TAU.tolist()},
        {
            "time": T,
            "position": Q[:, ::-1],
            "velocity": DQ[:, ::-1],
            "effort": TAU[:, ::-1],
            "joints": _two().joint_names[::-1],
        },
        {"t": T}
        | {s: dict(zip(_two().joint_names, x.T, strict=True)) for s, x in (("q", Q), ("dq", DQ), ("tau", TAU))},
        np.rec.fromarrays(list(table().values()), names=list(table())),
    ],
    ids=["columns", "arrays", "lists and the other axis", "joints in another order", "by joint", "records"],
)
def test_a_dict_of_arrays_gives_a_log(given: Any, robot: Robot) -> None:
    same(as_log(given, robot), robot)


def test_units_and_columns_are_mapped_as_those_of_files(robot: Robot) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"stamp": 1e3 * T, "a": np.degrees(Q[:, 0]), "b": np.degrees(Q[:, 1]), "x": TAU[:, 0], "y": TAU[:, 1]}
    )
    said = {"position": ["a", "b"], "torque": ["x", "y"], "units": {"position": "deg", "time": "ms"}}
    log = as_log(frame, robot, said)
    np.testing.assert_allclose(log.q, Q, rtol=1e-14)
    np.testing.assert_array_equal(log.tau, TAU)
    assert log.dq is None
    np.testing.assert_allclose(log.t, T, rtol=1e-14)


def test_an_integer_index_is_not_a_time(robot: Robot) -> None:
    pd = pytest.importorskip("pandas")
    chosen = pd.DataFrame(table()).iloc[100:300]
    log = as_log(chosen, robot)
    np.testing.assert_array_equal(log.t, T[100:300])


def test_one_or_several_logs_of_any_kind(robot: Robot, tmp_path: Path) -> None:
    whole = as_log(table(), robot)
    whole.save(tmp_path / "monday.npz")
    mixed = [table(), tmp_path / "monday.npz", str(tmp_path / "monday.npz"), whole]
    for logs in (as_logs(mixed, robot), as_logs(iter(mixed), robot)):
        assert [len(log) for log in logs] == [N] * 4
    assert as_logs(mixed, robot)[3] is whole
    assert as_logs(None, robot) == as_logs([], robot) == []
    names = [log_label(s, f"log {k + 1}") for k, s in enumerate(as_sources(mixed, robot))]
    assert names == ["log 1", "monday", "monday", "log 4"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "not as 'int'"),
        (np.zeros((5, 3)), "not as 'ndarray'; its columns have no names"),
        ({"t": T, "q": Q[:-1]}, "the dict: 'q' has 399 × 2 samples, 't' has 400"),
        ({"t": T, "q": [[1.0], [2.0, 3.0]]}, "'q' is not an array"),
        ({"t": T, "q": np.zeros((N, 2, 2))}, "has shape"),
        ({}, "holds no samples"),
        ({"q": np.zeros((N, 0))}, "holds no samples"),
        ({"t": T, "velocity": DQ}, "the dict: no columns with joint positions"),
        ({"q": Q, "tau": TAU}, "the dict: no column with the time"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_other_objects_are_refused(given: Any, said: str, robot: Robot) -> None:
    with pytest.raises(LogError, match=said):
        as_log(given, robot)


def test_several_where_one_is_needed(robot: Robot) -> None:
    with pytest.raises(LogError, match="One log is needed here, not 2"):
        as_log([table(), table()], robot)


def test_nothing_is_imported_for_a_dict(robot: Robot) -> None:
    """Neither pandas nor other libraries of frames are imported, since this takes time."""
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, steelyard as sy; r = sy.load_robot('rotradi'); t = np.arange(99) / 99; "
        "sy.read_log({'t': t, 'q': np.zeros((99, r.dof)), 'tau': np.ones((99, r.dof))}, r); "
        "print(sorted({'pandas', 'polars', 'xarray', 'pinocchio', 'mujoco', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
