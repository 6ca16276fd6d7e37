import subprocess
import sys
from array import array
from pathlib import Path

import pytest
import rclpy
from rclpy.node import Node

from softform_core.errors import SoftformError
from softform_ros.parameter_docs import with_current_tables
from softform_ros.parameters import Parameter, parameter_table_markdown, with_read_files

DOCS = Path(__file__).parents[3] / "docs" / "nodes"


def test_bounds_and_choices_are_checked():
    rate = Parameter("rate", 30.0, "rate in Hz", 1.0, 100.0)
    assert rate.taken(30.0) == 30.0
    for bad in (0.0, 101.0, float("nan")):
        with pytest.raises(SoftformError, match="rate"):
            rate.taken(bad)
    with pytest.raises(SoftformError, match="one of: a, b"):
        Parameter("mode", "a", "mode", choices=("a", "b")).taken("c")


def test_the_table_names_every_parameter():
    table = parameter_table_markdown(
        [Parameter("rate", 30.0, "rate in Hz", 1.0, 100.0), Parameter("port", "", "device")]
    )
    assert "| `rate` | float | `30.0` | 1 … 100 | rate in Hz |" in table
    assert "| `port` | str | (none) |" in table


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_the_pages_hold_the_current_parameter_tables(page):
    text = page.read_text(encoding="utf-8")
    assert with_current_tables(text) == text, "run: python -m softform_ros.parameter_docs"


TABLE = (
    Parameter("rate", 1.0, "Rate, Hz.", 0.5, 100.0),
    Parameter("seed", 0, "Seed.", 0, 7),
    Parameter("pose", [0.0, 1.0], "Pose."),
    Parameter("names", [""], "Names."),
    Parameter("source", "0", "Source."),
    Parameter("mode", "a", "Mode.", choices=("a", "b")),
    Parameter("is_on", True, "Whether it is on."),
)


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        *(("rate", 10, 10.0), ("rate", 0.5, 0.5), ("pose", [0, 1], [0.0, 1.0]), ("seed", 7, 7)),
        *(("pose", array("d", [2.0]), [2.0]), ("names", ["a"], ["a"]), ("is_on", False, False)),
    ],
)
def test_whole_numbers_are_taken_for_floats(name, given, taken):
    (row,) = (one for one in TABLE if one.name == name)
    value = row.taken(given)
    assert value == taken and type(value) is type(taken)
    if isinstance(value, list):
        assert [type(one) for one in value] == [type(one) for one in taken]


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        ("rate", float("nan"), "Parameter rate is nan. It takes a number from 0.5 to 100."),
        ("rate", True, "Parameter rate is true. It takes a number from 0.5 to 100."),
        ("rate", "fast", "Parameter rate is 'fast'. It takes a number"),
        ("rate", None, "Parameter rate is None. It takes a number"),
        ("rate", [1.0], r"Parameter rate is \[1.0\]. It takes a number"),
        ("rate", 101, "Parameter rate is 101. It takes a number from 0.5 to 100."),
        ("seed", -1, "Parameter seed is -1. It takes a whole number from 0 to 7."),
        ("seed", 1.0, "Parameter seed is 1.0. It takes a whole number"),
        ("pose", [float("inf")], r"It takes a list, each element a number\."),
        ("pose", 1.0, "Parameter pose is 1.0. It takes a list"),
        ("names", "a", "Parameter names is 'a'. It takes a list, each element a text"),
        ("names", [1], r"Parameter names is \[1\]."),
        ("source", 0, r"Parameter source is 0. It takes a text \(in quotes if it is digits\)."),
        ("mode", "c", "Parameter mode is 'c'. It takes one of: a, b."),
        ("is_on", 1, "Parameter is_on is 1. It takes true or false."),
    ],
)
def test_another_type_or_range_is_said_in_one_sentence(name, given, complaint):
    (row,) = (one for one in TABLE if one.name == name)
    with pytest.raises(SoftformError, match=complaint):
        row.taken(given)


def test_a_path_below_the_home_folder_is_one(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert Parameter("folder", "", "Folder.").taken("~/scans") == "/home/me/scans"
    assert Parameter("folders", [""], "Folders.").taken(["~/a", "b~/c"]) == ["/home/me/a", "b~/c"]


def test_every_text_comes_through_to_rcl(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("/**:\n  ros__parameters: {folder: /\u00e9/\U0001f600, bounds: [.inf, 1]}\n", encoding="utf-8")
    context = rclpy.Context()
    rclpy.init(args=with_read_files(["--ros-args", "--params-file", str(file)]), context=context)
    try:
        node = Node("n", context=context, automatically_declare_parameters_from_overrides=True)
        assert node.get_parameter("folder").value == "/\u00e9/\U0001f600"
        assert list(node.get_parameter("bounds").value) == [float("inf"), 1.0]
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


NODE = """
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter, read_parameters

class Valve(SoftformLifecycleNode):
    def __init__(self):
        super().__init__("valve", [Parameter("pose", [0.0], "p"), Parameter("rate", 1.0, "r", 0.5, 9.0)])
        print(read_parameters(self, self._parameter_table))
        self.trigger_configure()
        self.is_finished = True

run_node(Valve)
"""


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["pose: [0, 1.5]"], 0, "{'pose': [0.0, 1.5], 'rate': 1.0}"),
        (["rate: 2", "raet: 3.0"], 0, "p.yaml: parameter raet is not used: .* (the nearest is rate)"),
        (["pose: [1.0]", "rate: 90"], 78, "p.yaml: node /lab/valve: Parameter rate is 90. It takes a number from"),
        (["rate: null"], 78, "p.yaml: parameter rate is empty (null), which"),
        (["rate: .nan"], 78, "p.yaml: node /lab/valve: Parameter rate is"),
        (["rate: 010"], 78, "p.yaml: node /lab/valve: Parameter rate is 10. It takes a number from 0.5 to 9."),
        (["use_sim_time: 3"], 78, "'use_sim_time' to '3' of type 'INTEGER', expecting type 'BOOL'"),
    ],
)
def test_a_node_says_what_is_wrong_with_its_parameters_and_ends_at_once(tmp_path, given, code, said):
    file = tmp_path / "p.yaml"
    file.write_text("\n    ".join(["/**:\n  ros__parameters:", *given, ""]))
    command = [sys.executable, "-c", NODE, "--ros-args", "-r", "__ns:=/lab", "--params-file", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr
    output = ended.stdout + ended.stderr
    assert all(part in output for part in said.split(".*")), output
    assert "Traceback" not in output
