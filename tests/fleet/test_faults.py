"""Runs with real processes that die: the result is identical, or the error names what is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from steelyard.cli.app import app
from steelyard.errors import SteelyardError
from steelyard.fleet import executor, run_fleet
from steelyard.fleet.connection import ExecutorError
from steelyard.fleet.executor import AbandonedItemError, DaskExecutor
from steelyard.fleet.fleet import FleetOutcome, identify_fleet
from steelyard.ground.progress import ProgressReport
from tests.fleet.faulty_worker import deadly, squared, unfit
from tests.fleet.planar_fleet import write_fleet

INSECURE = {"insecure_scheduler": True}  # on loopback, for some seconds
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fleet(tmp_path_factory.mktemp("fleet") / "logs", robots=4, logs=6, samples=800)


def run(logs: Path, **options: Any) -> FleetOutcome:
    return identify_fleet(logs, **{"workers": 0, "plain": True, **options})


def as_bytes(found: FleetOutcome) -> list[bytes]:
    own = found.factors
    return [factors.to_bytes() for factors in (*own.logs, *own.robots.values(), *own.robot_types.values())]


@pytest.fixture(scope="module")
def first(logs: Path) -> tuple[Path, list[bytes]]:
    """The store of an undisturbed run, and its factors."""
    store = logs.parent / "first"
    return store, as_bytes(run(logs, store=store))


@pytest.fixture(scope="module")
def undisturbed(first: tuple[Path, list[bytes]]) -> list[bytes]:
    return first[1]


@pytest.fixture
def store(first: tuple[Path, list[bytes]], tmp_path: Path) -> Path:
    """A store that contains only the settings of the first run."""
    made = tmp_path / "fleet-store"
    (made / "settings").mkdir(parents=True)
    for path in (first[0] / "STORE", *(first[0] / "settings").iterdir()):
        (made / path.relative_to(first[0])).write_bytes(path.read_bytes())
    return made


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskExecutor]:
    with DaskExecutor(workers=2) as made:
        yield made


@pytest.fixture
def on_cluster(cluster: DaskExecutor, monkeypatch: pytest.MonkeyPatch) -> DaskExecutor:
    """Runs use the cluster that all tests share."""
    monkeypatch.setattr(run_fleet, "make_executor", lambda *_: _SharedExecutor(cluster))
    return cluster


class _SharedExecutor(executor.Executor):
    """An executor that runs do not end."""

    def __init__(self, owner: DaskExecutor) -> None:
        self.owner, self.dashboard = owner, owner.dashboard

    def results(self, function: Any, items: Any) -> Any:
        return self.owner.results(function, items)

    @property
    def cores(self) -> int:
        return self.owner.cores


def worker_pids(made: DaskExecutor) -> list[int]:
    client = made._client
    return [] if client is None else list(client.run(os.getpid).values())


@contextmanager
def killing(made: DaskExecutor, times: int, pause: float) -> Iterator[list[int]]:
    """Kill a worker about every `pause` seconds, up to `times` workers."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        while len(killed) < times and not over.wait(pause * (0.5 + (len(killed) * 0.618) % 1.0)):
            pids = [pid for pid in worker_pids(made) if pid not in killed]
            if pids:
                os.kill(pids[len(killed) % len(pids)], signal.SIGKILL)
                killed.append(pids[len(killed) % len(pids)])

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_workers_give_the_same_result_as_this_process(
    logs: Path, store: Path, undisturbed: list[bytes], on_cluster: DaskExecutor
) -> None:
    found = run(logs, workers=2, store=store)
    assert as_bytes(found) == undisturbed
    tally = found.factors.tally
    assert tally.engine == "dask"
    assert tally.dashboard.startswith("http://localhost:")
    assert len(tally.peak_bytes) == 3, "two workers and this process"
    assert all(50e6 < peak < 1e9 for name, peak in tally.peak_bytes.items() if "coordinator" not in name)


def test_a_killed_worker_changes_nothing(
    logs: Path, store: Path, undisturbed: list[bytes], on_cluster: DaskExecutor
) -> None:
    with killing(on_cluster, 2, 0.3) as killed:
        found = run(logs, workers=2, store=store)
        done = dict(on_cluster.results(squared, range(12)))
    assert as_bytes(found) == undisturbed
    assert done == {k: k * k for k in range(12)}
    assert killed


def test_only_the_item_that_kills_its_workers_is_abandoned(on_cluster: DaskExecutor) -> None:
    """Items of the same task are abandoned with it at first; each is then tried alone."""
    on_cluster._client.run_on_scheduler(allow_no_failures)
    done = dict(on_cluster.results(deadly, range(6)))
    assert isinstance(done.pop(3), AbandonedItemError)
    assert done == {k: k * k for k in (0, 1, 2, 4, 5)}


def allow_no_failures(dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = 0


def test_workers_without_the_package_are_reported(on_cluster: DaskExecutor) -> None:
    with pytest.raises(ExecutorError, match=r"No module named 'steelyard'.*install the version of Steelyard"):
        list(on_cluster.results(unfit, range(3)))


# ---------------------------------------------------------------- schedulers


def test_a_scheduler_that_does_not_answer_gives_one_error_line(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "_CONNECT_S", 0.5)
    told = {"tcp://127.0.0.1:9": "no scheduler answers there", "nonsense": "is not the address of a scheduler"}
    for address, words in told.items():
        asked = ["--scheduler", address, "--insecure-scheduler"]
        done = CliRunner().invoke(app, ["fleet", str(logs), "-o", str(tmp_path / "run"), *asked])
        assert done.exit_code == 2
        assert f"{address}: {words}" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_without_dask_only_one_process_works(
    logs: Path, store: Path, undisturbed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SteelyardError, match=r"steelyard\[fleet\]; --workers 0 uses this process alone.*distributed"):
        run(logs, workers=2, store=store)
    assert as_bytes(run(logs, workers=0, store=store)) == undisturbed


def started(*words: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", "dask", *words], **quiet)  # type: ignore[call-overload, no-any-return]


@pytest.mark.proof
def test_a_run_survives_a_restarted_scheduler(logs: Path, undisturbed: list[bytes], tmp_path: Path) -> None:
    """Scheduler and workers are separate processes; all are killed halfway, and started again."""
    port = 20_000 + os.getpid() % 20_000
    address = f"tcp://127.0.0.1:{port}"

    def start() -> list[subprocess.Popen[bytes]]:
        return [
            started("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
            started("worker", address, "--nthreads", "1", "--no-dashboard", "--nworkers", "1"),
        ]

    processes = start()
    again: list[subprocess.Popen[bytes]] = []

    def lose(far: ProgressReport) -> None:
        if "Processing" in far.stage and far.message.startswith("8 of") and not again:
            for process in processes:
                process.kill()
            time.sleep(1.0)
            again.extend(start())

    try:
        for _ in range(40):  # until it listens
            time.sleep(0.25)
            try:
                with DaskExecutor(address, insecure=True):
                    break
            except ExecutorError:
                continue
        found = run(logs, workers=None, scheduler=address, **INSECURE, store=tmp_path / "store", progress=lose)
        assert again, "it was lost"
        assert as_bytes(found) == undisturbed
    finally:
        for process in [*processes, *again]:
            process.kill()


@pytest.mark.proof
def test_a_lost_scheduler_keeps_the_finished_logs(
    logs: Path, tmp_path: Path, undisturbed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "_LOST_S", 3.0)
    port = 20_001 + os.getpid() % 20_000
    address = f"tcp://127.0.0.1:{port}"
    processes = [
        started("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
        started("worker", address, "--nthreads", "1", "--no-dashboard", "--nworkers", "1"),
    ]

    def lose(far: ProgressReport) -> None:
        if "Processing" in far.stage and far.message.startswith("8 of"):
            for process in processes:
                process.kill()

    time.sleep(3.0)
    try:
        with pytest.raises(SteelyardError, match=r"was lost and did not come back.*of 24 logs are done and stored"):
            run(logs, workers=None, scheduler=address, **INSECURE, store=tmp_path / "store", progress=lose)
    finally:
        for process in processes:
            process.kill()
    rest = run(logs, store=tmp_path / "store")
    assert rest.factors.tally.kept >= 8
    assert as_bytes(rest) == undisturbed


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(3))
def test_workers_killed_at_random_moments(logs: Path, undisturbed: list[bytes], seed: int) -> None:
    """Workers are killed about every second, some while they start, until their nanny gives up."""
    with DaskExecutor(workers=2) as made, killing(made, 6, 0.7 + 0.5 * seed) as killed:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_fleet, "make_executor", lambda *_: _SharedExecutor(made))
            assert as_bytes(run(logs, workers=2)) == undisturbed
        dict(made.results(squared, range(60)))
    assert killed


# ---------------------------------------------------------------- logs and disks


def test_logs_that_vanish_or_break_during_the_run_are_listed(logs: Path, tmp_path: Path) -> None:
    """After the first logs are processed, one log of the last robot is deleted, and one is truncated."""
    mine = write_fleet(tmp_path / "logs", robots=2, logs=4, samples=800)
    gone, cut = mine / "arm1" / "2026-01-03.parquet", mine / "arm1" / "2026-01-04.parquet"

    def spoil(far: ProgressReport) -> None:
        if "Processing" in far.stage and far.message.startswith("2 of"):
            gone.unlink()
            cut.write_bytes(cut.read_bytes()[:1000])

    found = run(mine, progress=spoil, store=tmp_path / "store")
    assert set(found.skipped) == {str(gone), str(cut)}
    assert "No such file" in found.skipped[str(gone)]
    assert found.factors.robots["arm1"].logs == 2
    other = tmp_path / "other" / "settings"
    other.mkdir(parents=True)
    for path in (tmp_path / "store" / "settings").iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    (tmp_path / "other" / "STORE").write_bytes((tmp_path / "store" / "STORE").read_bytes())
    without = run(mine, store=tmp_path / "other")
    assert as_bytes(without)[-3:] == as_bytes(found)[-3:], "robots and type as without these two logs"


FULL = """
import resource, signal, sys
from steelyard.fleet.fleet import identify_fleet
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def full(far):
    if "Processing" in far.stage and far.message.startswith("5 of"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
found = identify_fleet(sys.argv[1], store=sys.argv[2], workers=0, plain=True, progress=full)
own = found.factors
import hashlib
print(own.tally.unkept, own.tally.trouble)
every = b"".join(f.to_bytes() for f in (*own.logs, *own.robots.values(), *own.robot_types.values()))
print(hashlib.sha256(every).hexdigest())
"""


def test_a_full_disk_is_reported_and_the_result_is_correct(logs: Path, undisturbed: list[bytes], store: Path) -> None:
    """After five logs no file may be longer than 512 bytes, in a separate process."""
    import hashlib

    done = subprocess.run([sys.executable, "-c", FULL, str(logs), str(store)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, digest = done.stdout.splitlines()
    assert int(said.split()[0]) == 19 + 4, "the other logs, and four robots"
    assert "can no longer be written" in said
    assert digest == hashlib.sha256(b"".join(undisturbed)).hexdigest()
    again = run(logs, store=store)
    assert again.factors.tally.kept == 5
    assert again.factors.tally.mended == 0
    assert as_bytes(again) == undisturbed


def test_two_coordinators_on_one_store_give_the_same_result(logs: Path, undisturbed: list[bytes], store: Path) -> None:
    words = [sys.executable, "-m", "steelyard", "fleet", str(logs), "--workers", "0", "--plain"]
    both = [subprocess.Popen([*words, "-o", str(store.parent / name)], stdout=subprocess.DEVNULL) for name in "ab"]
    assert [p.wait(120) for p in both] == [0, 0]
    last = run(logs, store=store)
    assert last.factors.tally.kept == 24
    assert last.factors.tally.mended == 0
    assert as_bytes(last) == undisturbed


def test_a_run_continues_from_the_store_of_a_killed_one(logs: Path, undisturbed: list[bytes], store: Path) -> None:
    words = [sys.executable, "-m", "steelyard", "fleet", str(logs), "--workers", "0", "--plain"]
    made = subprocess.Popen([*words, "-o", str(store.parent / "run")], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60.0
    while len(list(store.glob("factors/*/*"))) < 4 and time.monotonic() < until:
        time.sleep(0.005)
    made.kill()
    made.wait()
    rest = run(logs, store=store)
    assert rest.factors.tally.kept >= 3
    assert rest.factors.tally.mended == 0
    assert as_bytes(rest) == undisturbed


@pytest.mark.proof
def test_an_interrupt_ends_in_one_line_and_leaves_no_process(logs: Path, undisturbed: list[bytes], store: Path) -> None:
    """Ctrl-C reaches all processes of a terminal: the command, its workers, and their nannies."""
    words = [sys.executable, "-m", "steelyard", "fleet", str(logs), "--workers", "2", "--plain"]
    output = ["-o", str(store.parent / "run")]
    made = subprocess.Popen(
        [*words, *output],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Background processes of a shell ignore Ctrl-C, and so do their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 60.0
    while not list(store.glob("factors/*/*")) and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(made.pid, signal.SIGINT)
    assert made.communicate(timeout=30)[1].strip() == "steelyard: stopped."
    assert made.returncode == 130
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        try:
            os.killpg(made.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a worker outlived the command")
    assert as_bytes(run(logs, store=store)) == undisturbed
