"""Hostile or invalid files are refused quickly with one sentence. Fuzzing found each of these cases."""

import json
import os
import time
import tracemalloc
from pathlib import Path

import pytest
from refusals import refused

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import RobotError, SteelyardError
from steelyard.ground.documents import parse_document, read_document
from steelyard.ground.field import Field
from steelyard.ground.untrusted_files import parse_json, read_bytes, read_json
from steelyard.robot.load import load_robot
from steelyard.robot.robot import MOST_JOINTS
from steelyard.signals.mapping import LogMapping


def chain(count: int, joint: str = "", kind: str = "revolute") -> str:
    links = "".join(f'<link name="l{k}"/>' for k in range(count + 1))
    joints = "".join(
        f'<joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>{joint.format(k - 1)}</joint>'
        for k in range(count)
    )
    return f'<robot name="chain">{links}{joints}</robot>'


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


# -------------------------------------------------------------------- robots


def test_the_number_of_joints_is_limited(tmp_path: Path) -> None:
    rows = "".join(f" - [q{k}, 0.1, 0.2, 0.3]\n" for k in range(300))
    nested = "<body><joint/>" * 300 + "</body>" * 300
    for name, text in {
        "long.urdf": chain(MOST_JOINTS + 1),
        "mimic.urdf": chain(3000, '<mimic joint="j{}"/>'),
        "rows.yaml": f"convention: standard\nrows:\n{rows}",
    }.items():
        refused(lambda n=name, t=text: load_robot(write(tmp_path, n, t)), str(MOST_JOINTS), error=RobotError)
    refused(lambda: load_robot(write(tmp_path, "deep.xml", f"<mujoco><worldbody>{nested}</worldbody></mujoco>")))


def test_long_chains_are_refused_but_a_part_of_their_joints_works(tmp_path: Path) -> None:
    path = write(tmp_path, "chain.urdf", chain(150))
    refused(lambda: Dynamics(load_robot(path)), "chain.urdf", "--joints", error=RobotError)
    part = load_robot(path, joints=[f"j{k}" for k in range(6)])
    assert Dynamics(part).robot.dof == 6


def test_many_unnamed_bodies_are_numbered_in_linear_time(tmp_path: Path) -> None:
    bodies = "<body/>" * 10_000 + "<body><joint/></body>"
    names = "".join(f'<site name="body{k}"/>' for k in range(10_000))
    path = write(tmp_path, "many.xml", f"<mujoco><worldbody>{names}{bodies}</worldbody></mujoco>")
    start = time.process_time()
    assert load_robot(path).dof == 1
    assert time.process_time() - start < 4.0  # a quadratic algorithm took minutes


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.urdf", chain(2, '<mimic joint="j0" multiplier="1e308"/>'), ["line 1", "multiplier", "1e+15"]),
        ("a.urdf", chain(4, '<mimic joint="j{}" multiplier="-1e14"/>').replace("j-1", "j3"), ["mimic"]),
        ("a.yaml", f"convention: standard\nconstants: {{c: '{'1' * 299}'}}\nrows: [[q1, c, 0, 0]]", ["constants", "c"]),
        ("a.yaml", "convention: standard\nrows: [[q1, 0x" + "f" * 9000 + ", 0, 0]]", ["line 2", "digits"]),
        ("a.yaml", "convention: standard\nrows: [[q1, " + ":".join(["1"] * 60_000) + ", 0, 0]]", ["digits"]),
        ("a.yaml", "rows: " + "[" * 5000 + "]" * 5000, ["nested"]),
        ("a.toml", "rows = " + "[" * 5000 + "]" * 5000, ["nested"]),
        ("a.yaml", "convention: standard\nrows: [[q1, 0, 0, 0]]\ngravity: [0, 0, 1e+308]", ["gravity", "1e+308"]),
        ("a.yaml", "convention: standard\nrows: [[q1, 0, 0, 0]]\ngravity: [0, 0, 1e9]", ["gravity", "10000"]),
        (
            "a.xml",
            '<mujoco><worldbody><body><joint/><inertial pos="0 0 0" mass="2" diaginertia="1e308 1e308 -1"/></body>'
            "</worldbody></mujoco>",
            ["diaginertia"],
        ),
        (
            "a.xml",
            '<mujoco><worldbody><body><joint/><geom size="1e9" density="1e9"/></body></worldbody></mujoco>',
            ["inertia", "body1"],
        ),
        ("a.yaml", 'name: "\\ud800"\nconvention: standard\nrows: [[q1, 0, 0, 0]]', ["line 1", "character"]),
        ("a.xml", f'<mujoco><include file="{"a" * 5000}"/></mujoco>', ["line 1", "include"]),
        ("a.xml", f"<mujoco><worldbody {'a' * 5000}='1'", ["line 1"]),
    ],
)
def test_invalid_robots_are_refused(tmp_path: Path, name: str, text: str, words: list[str]) -> None:
    refused(lambda: load_robot(write(tmp_path, name, text)), *words, error=RobotError)


def test_nested_aliases_are_refused_before_expansion() -> None:
    lines = ["x0: &x0 {a: 1}"]
    lines += [f"x{k}: &x{k} {{<<: [{', '.join([f'*x{k - 1}'] * 9)}]}}" for k in range(1, 10)]
    refused(lambda: parse_document("\n".join([*lines, "rows: []"]), "merge.yaml"), "merge.yaml: line 2", "*x0")


def test_a_tiny_number_becomes_zero() -> None:
    assert Field(1e-300, "x").number() == 0.0
    assert Field("1e-200", "x").number() == 0.0
    assert Field(1e-50, "x").number() == 1e-50


# -------------------------------------------------------------------- files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes among the files of this system")
def test_pipes_devices_and_folders_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "arm.urdf"
    os.mkfifo(pipe)
    refused(lambda: load_robot(pipe), "arm.urdf", "pipe", error=RobotError)
    refused(lambda: LogMapping.read(pipe), "pipe")
    refused(lambda: read_bytes(Path("/dev/zero"), 10), "device")
    refused(lambda: read_bytes(tmp_path, 10), "folder")
    refused(lambda: read_bytes(tmp_path / ("a" * 5000), 10), "cannot be read")
    refused(lambda: read_bytes(Path("a\0b"), 10), "cannot be read")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.urdf"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: no bytes on the disk
    refused(lambda: load_robot(path), "huge.urdf", "MB", error=RobotError)


def test_json_is_bounded_in_depth_and_digits() -> None:
    for text, word in {
        "[" * 10_000 + "]" * 10_000: "nested",
        '{"a":' * 100 + "1" + "}" * 100: "nested",
        "[" + "9" * 5000 + "]": "5000 digits",
        "[1e999]": "too large",
        "[" + "1." + "0" * 5000 + "]": "too large",
        "[NaN]": "NaN",
        "[-Infinity]": "-Infinity",
        "[1, 2": "JSON",
        '["\\ud800"]': "JSON",
        '"' + '\\"' * 1_000_000: "JSON",
    }.items():
        refused(lambda t=text: parse_json(t, "a.json", SteelyardError), "a.json", word)
    deep = '["' + "[" * 1000 + '\\"[", [[1]]]'
    assert parse_json(deep, "a.json", SteelyardError) == json.loads(deep)


def test_errors_in_a_json_file_name_the_place(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", '{"joints": [{"mass": "heavy"}]}')
    entry = read_json(path, SteelyardError, "write one").table(("joints",))["joints"].items("joint")[0]
    refused(lambda: entry.table(("mass",))["mass"].number(), "a.json: joints: joint 1: mass:", "heavy")
    refused(lambda: read_json(tmp_path / "none.json", SteelyardError, "write one"), "none.json", "write one")


def test_arrays_are_checked_entry_by_entry() -> None:
    def entry(value: object) -> Field:
        return Field(value, "x")

    assert entry([[1, 2.5], ["1/2", 4]]).array(2, 2).tolist() == [[1.0, 2.5], [0.5, 4.0]]
    assert entry([]).array(None, 3).shape == (0, 3)
    assert entry([1.0, None]).array(2, missing=7.0).tolist() == [1.0, 7.0]
    for value, shape in (([[1], [2, 3]], (None, None)), ([1.0, None], (2,)), ([1.0], (2,)), ([1e300], (1,)), (3, (1,))):
        refused(lambda v=value, s=shape: entry(v).array(*s), "x: ")


def test_messages_have_no_control_characters_and_a_limited_length() -> None:
    error = SteelyardError("\x1b[2J" + "name " * 1000 + "remedy.")
    assert "\x1b" not in str(error)
    assert 270 < len(str(error)) <= 300  # cut between words
    assert str(error).endswith("remedy.")


def test_reading_allocates_the_size_of_the_file_and_reads_files_of_unknown_size(tmp_path: Path) -> None:
    """The limit itself is not allocated, and a file that reports size 0 is read to its end."""
    (tmp_path / "small").write_bytes(b"small")
    tracemalloc.start()
    try:
        assert read_bytes(tmp_path / "small", 1 << 30) == b"small"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    unknown_size = Path("/proc/self/status")
    if unknown_size.exists():
        assert unknown_size.stat().st_size == 0
        assert read_bytes(unknown_size, 100_000).startswith(b"Name:")
        refused(lambda: read_bytes(unknown_size, 100), "larger than")


@pytest.mark.parametrize("part", ["a", '"a"', "'a'", " a "])
def test_a_key_with_many_parts_is_refused_quickly(tmp_path: Path, part: str) -> None:
    """tomllib takes minutes: its time is quadratic in the number of parts of a dotted key."""
    file = tmp_path / "x.toml"
    start = time.process_time()
    for text in (".".join([part] * 30_000) + " = 1\n", "[" + ".".join([part] * 30_000) + "]\n"):
        file.write_text("b = 1\n" + text)
        with pytest.raises(SteelyardError, match=r"x.toml: line 2: a key has more than 64 parts"):
            read_document(file, SteelyardError)
    for good in ("a" * 100_000 + " = 1\n", 'b = "' + "'" * 100_000 + '"\n', "b = [" + "1.5," * 30_000 + "]\n"):
        file.write_text(good)
        assert len(read_document(file, SteelyardError)) == 1
    file.write_text(".".join(["a"] * 60) + " = 1\n")
    assert "a" in read_document(file, SteelyardError)
    assert time.process_time() - start < 3.0  # [s]; the search is linear
