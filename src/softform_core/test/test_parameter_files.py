"""Parameter files as the world has them: what rcl rejects with a traceback, or takes silently for something else."""

import pytest

from softform_core.errors import SoftformError
from softform_core.parameter_files import is_for, read_parameter_file

BEGINNING = "/**:\n  ros__parameters:\n    "


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "p.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_parameter_file(path)

    return read


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            ("10", 10),
            ("0x10", 16),
            ("010", 10),
            ("-1", -1),
            ("1.5", 1.5),
            ("1e3", 1e3),
            ("true", True),
            ("0,5", "0,5"),
        ),
        *(('"010"', "010"), ("'null'", "null"), ("[a, 'b']", ["a", "b"]), ("[1, 2]", [1, 2])),
        ("[0, -0.22, 1e3]", [0.0, -0.22, 1e3]),  # "Sequence should be of same type" for rcl
    ],
)
def test_a_value_is_what_it_looks_like(read, written, value):
    (found,) = read(f"{BEGINNING}rate: {written}\n").values()
    assert found == {"rate": value} and type(found["rate"]) is type(value)
    if isinstance(value, list):
        assert [type(one) for one in found["rate"]] == [type(one) for one in value]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        *((f"{BEGINNING}rate: {empty}", r"parameter rate is empty \(null\), which") for empty in ("null", "~", "")),
        (f"{BEGINNING}rate: [1.0, null]", r"parameter rate is \[1.0, None\]"),
        (f"{BEGINNING}rate: []", r"parameter rate is \[\], which ROS cannot pass"),
        (f"{BEGINNING}rate: [1, a]", r"parameter rate is \[1, 'a'\]"),
        (f"{BEGINNING}rate: [true, 1]", r"parameter rate is \[True, 1\]"),
        (f"{BEGINNING}rate: [[1], [2]]", r"parameter rate is \[\[1\], \[2\]\]"),
        (f"{BEGINNING}a:\n      b: null", "parameter a.b is empty"),
        (f"{BEGINNING}rate: 1.0\n    rate: 2.0", "'rate' is given twice"),
        ("rate: 1.0", r"'rate' stands outside of ros__parameters. Write '/\*\*:'"),
        ("/**:\n  rate: 1.0", r"'\*\*/rate' stands outside"),
        ("/**:\n  ros__parameters: 3", "ros__parameters is '3'"),
        ("- a", "stands outside"),
        ("/**:\n\tros__parameters:", "not valid YAML: .*in line 2"),
        (f"{BEGINNING}name: \u00e4".encode("latin-1"), "not UTF-8"),
    ],
)
def test_what_ros_cannot_take_is_said_with_the_file(read, tmp_path, content, complaint):
    with pytest.raises(SoftformError, match=complaint) as caught:
        read(content)
    assert str(caught.value).startswith(str(tmp_path / "p.yaml")) and caught.value.next_step


def test_empty_files_and_sections_of_namespaces_are_read(read):
    assert read("") == {} and read(f"{BEGINNING}\n") == {"/**": {}}
    found = read(
        "\ufeffsoft:\n  rig:\n    ros__parameters: {a: {c: 1}}\n/soft/actuation:\n  ros__parameters:\n    b: 2\n"
    )
    assert found == {"/soft/rig": {"a.c": 1}, "/soft/actuation": {"b": 2}}


@pytest.mark.parametrize(
    ("section", "node", "matches"),
    [
        *(("/**", "/a/b", True), ("/**", "/b", True), ("b", "/b", True), ("b", "/a/b", False), ("/a/b", "/a/b", True)),
        *(("/*/b", "/a/b", True), ("/*/b", "/b", False), ("/**/b", "/a/c/b", True), ("/**/b", "/b", True)),
        *(("/a/**", "/a/c/b", True), ("/a/*", "/a/b", True), ("/a/*", "/a/c/b", False), ("/a.", "/ab", False)),
    ],
)
def test_wildcards_of_sections(section, node, matches):
    assert is_for(section, node) == matches
