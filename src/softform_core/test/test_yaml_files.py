"""YAML as people write it: what a number looks like is what it is, in each file that a user writes."""

import pytest
import yaml

from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.plant import load_plant
from softform_core.robots import load_robot
from softform_core.yaml_files import parse_yaml, read_yaml


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("[00, 02, 010, -07, +3, 089]", [0, 2, 10, -7, 3, 89]),
        ("[0x10, 0o10]", [16, 8]),
        ("[1e3, 4.2e4, -6e-2, .5, 5., 1.5E+2]", [1e3, 4.2e4, -0.06, 0.5, 5.0, 150.0]),
        ("[.inf, -.Inf]", [float("inf"), -float("inf")]),
        ("[yes, No, on, OFF, y, n]", ["yes", "No", "on", "OFF", "y", "n"]),
        ("[true, False, TRUE]", [True, False, True]),
        ("[1:30, 190:20:30.5, 1_000, 0b11, 2026-11-28, 1.2.3]", None),
        ("[~, null, '', ]", [None, None, ""]),
        ("[&a {p: 1, q: 2}, &b {<<: *a, p: 3}, {<<: *b}]", [{"p": 1, "q": 2}, {"p": 3, "q": 2}, {"p": 3, "q": 2}]),
        ("", None),
    ],
)  # fmt: skip
def test_a_word_is_a_number_if_it_looks_like_one(text, means):
    expected = text.strip("[]").split(", ") if means is None and text else means
    assert parse_yaml(text) == expected


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "a: {b: 1, 'b': 2}", "- [{a: 1, b: 2, a: 1}]", "{<<: {a: 1}, <<: {b: 1}}"]
)
def test_nothing_is_said_twice(text):
    with pytest.raises(yaml.YAMLError, match="given twice"):
        parse_yaml(text)


def test_a_file_tells_what_is_wrong_with_it(tmp_path):
    file = tmp_path / "file.yaml"
    for content, why in [
        (b"a:\n\tb: 1", "in line 2.*indent by blanks"),
        (b"a: \xfc", "not UTF-8"),
        (b"a: {", "in line 2"),
        (b"- " * 2000, "recursion"),
    ]:
        file.write_bytes(content)
        with pytest.raises(SoftformError, match=f"(?s)not valid YAML.*{why}"):
            read_yaml(file)
    with pytest.raises(SoftformError, match="cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")
    file.write_bytes("\ufeffa: 010\r\n".encode())
    assert read_yaml(file) == {"a": 10}


@pytest.mark.parametrize(
    ("was", "written", "read"),
    [
        ("channels: [0, 2, 4]", "channels: [00, 02, 010]", lambda robot: robot.devices[0].channels == [0, 2, 10]),
        ("density: 1080.0", "density: 1.08e3", lambda robot: robot.body.section.density == 1080.0),
        ("minimum: 0.0", "minimum: -6e3", lambda robot: robot.actuation_min[0] == -6000.0),
        ("planar: false", "planar: no", lambda robot: robot.body.planar is False),
        ("name: three_chamber", "name: no", lambda robot: robot.name == "no"),
        ("length: 0.110", "length: 0,110", "length: .*valid number"),
        ("length: 0.110", "length: 1:30", "length: .*valid number"),
        ("channels: [0, 2, 4]", "channels: [0, 2, 1:30]", "channels.2: .*valid integer"),
        ("name: three_chamber", "name: 012", "name: .*valid string"),
        ("slew_rate: 20000.0", "slew_rate: .inf", "slew_rate"),
        ("    length: 0.110", "    length: 0.110\n    length: 0.120", "'length' is given twice in line"),
    ],
)
def test_a_robot_is_what_its_description_looks_like(tmp_path, was, written, read):
    text = robot_file("three_chamber").read_text(encoding="utf-8")
    assert text.count(was) == 1
    file = tmp_path / "mine.yaml"
    file.write_text(text.replace(was, written), encoding="utf-8")
    if callable(read):
        assert read(load_robot(file))
        return
    with pytest.raises(SoftformError, match=read):
        load_robot(file)


def test_a_plant_is_read_by_the_same_rules(tmp_path):
    text = yaml.safe_dump({"plant": load_plant().model_dump()})
    file = tmp_path / "plant.yaml"
    file.write_text(text.replace("leak_time:", "leak_time: 015 #"))
    assert load_plant(file).leak_time == 15.0
    file.write_text(text + "  leak_time: 3.0\n")
    with pytest.raises(SoftformError, match="'leak_time' is given twice"):
        load_plant(file)
    with pytest.raises(SoftformError, match="no plant description"):
        load_plant(tmp_path / "none.yaml")
