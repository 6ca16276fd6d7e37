"""The launch file parser: every tag, every substitution, every error."""

import os
from pathlib import Path

import pytest

from softform_core.errors import SoftformError
from softform_launch.launch_file import list_arguments, load_launch_file
from softform_launch.launch_xml import LaunchFileError


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """Install prefix with the package `demo_pkg` and its executable `talker`."""
    prefix = tmp_path / "install"
    (prefix / "share" / "ament_index" / "resource_index" / "packages").mkdir(parents=True)
    (prefix / "share" / "ament_index" / "resource_index" / "packages" / "demo_pkg").touch()
    (prefix / "lib" / "demo_pkg").mkdir(parents=True)
    talker = prefix / "lib" / "demo_pkg" / "talker"
    talker.write_text("#!/bin/sh\n")
    talker.chmod(0o755)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    return prefix


@pytest.fixture
def load(tmp_path, prefix):
    """Return a function that evaluates the body of a launch file."""

    def load(body, **arguments):
        file = tmp_path / "test.launch.xml"
        file.write_text(f"<launch>\n{body}\n</launch>\n")
        return load_launch_file(file, arguments)

    return load


NODE = '<node pkg="demo_pkg" exec="talker" name="{}"/>'


def ros_arguments(process):
    command = list(process.command)
    return command[command.index("--ros-args") + 1 :] if "--ros-args" in command else []


def after(words, option):
    return [words[i + 1] for i, word in enumerate(words[:-1]) if word == option]


def test_node_gives_the_documented_command(load, prefix, tmp_path):
    parameters = tmp_path / "p.yaml"
    parameters.write_text("/**:\n  ros__parameters:\n    a: 1\n")
    (process,) = load(
        f"""<node pkg="demo_pkg" exec="talker" name="rig" namespace="soft" args="--fast 'two words'">
          <param from="{parameters}"/>
          <remap from="a" to="b"/>
        </node>"""
    )
    assert process.command == (
        *(str(prefix / "lib/demo_pkg/talker"), "--fast", "two words", "--ros-args"),
        *("-r", "__node:=rig", "-r", "__ns:=/soft", "--params-file", str(parameters), "-r", "a:=b"),
    )
    assert process.name == "rig"
    assert not process.respawn and not process.is_required


def test_node_without_name_shows_its_executable(load):
    (process,) = load('<node pkg="demo_pkg" exec="talker"/>')
    assert process.name == "talker"
    assert process.command[1:] == ()


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('value="3"', "3"),
        ('value="3.5"', "3.5"),
        ('value="true"', "true"),
        ('value="text"', '"text"'),
        ('value="3" type="str"', '"3"'),
        ('value="3" type="float"', "3.0"),
        ('value="1e-3" type="float"', "0.001"),
        ('value="/dev/ttyUSB0"', '"/dev/ttyUSB0"'),
        ('value=""', '""'),
        ('value="c1,c2" value-sep=","', '["c1", "c2"]'),
        ('value="$(env SOFTFORM_TEST_NOWHERE a,b)|c" value-sep="|"', '["a,b", "c"]'),
        ('value="[1, 2.5]"', "[1.0, 2.5]"),
        ('value="[1, 2]" type="list_of_float"', "[1.0, 2.0]"),
        ('value="[1, 2]" type="list_of_str"', '["1", "2"]'),
        ('value="2024-01-01"', '"2024-01-01"'),
    ],
)
def test_parameter_types(load, attributes, expected):
    (process,) = load(
        f'<node pkg="demo_pkg" exec="talker" name="n" namespace="/s"><param name="p" {attributes}/></node>'
    )
    assert after(ros_arguments(process), "-p") == [f"p:={expected}"]


def test_nested_parameters_get_dotted_names(load):
    (process,) = load(
        """<node pkg="demo_pkg" exec="talker">
          <param name="a"><param name="b" value="1"/><param name="c"><param name="d" value="x"/></param></param>
        </node>"""
    )
    assert after(ros_arguments(process), "-p") == ["a.b:=1", 'a.c.d:="x"']


def test_arguments_defaults_and_overrides(load):
    body = f'<arg name="a" default="one"/><arg name="b" default="$(var a)_two"/>{NODE.format("$(var b)")}'
    assert load(body)[0].name == "one_two"
    assert load(body, a="x")[0].name == "x_two"
    assert load(body, b="y")[0].name == "y"


def test_let_replaces_within_its_group_only(load):
    processes = load(
        f"""<let name="x" value="outer"/>
        <group><let name="x" value="inner"/>{NODE.format("$(var x)")}</group>
        {NODE.format("$(var x)")}"""
    )
    assert [p.name for p in processes] == ["inner", "outer"]


@pytest.mark.parametrize(("value", "expected"), [("true", 1), ("True", 1), ("1", 1), ("false", 0), ("0", 0)])
def test_if_and_unless(load, value, expected):
    body = '<arg name="on"/><node pkg="demo_pkg" exec="talker" {}="$(var on)"/>'
    assert len(load(body.format("if"), on=value)) == expected
    assert len(load(body.format("unless"), on=value)) == 1 - expected


def test_namespaces_nest_and_end_with_their_group(load):
    processes = load(
        f"""<group>
          <push_ros_namespace namespace="a"/>
          <group><push-ros-namespace namespace="b"/>{NODE.format("deep")}</group>
          <node pkg="demo_pkg" exec="talker" name="absolute" namespace="/c"/>
          {NODE.format("shallow")}
        </group>
        {NODE.format("top")}"""
    )
    found = {p.name: [w for w in ros_arguments(p) if w.startswith("__ns:=")] for p in processes}
    assert found == {"deep": ["__ns:=/a/b"], "absolute": ["__ns:=/c"], "shallow": ["__ns:=/a"], "top": []}


def test_environment_of_groups_and_nodes(load, monkeypatch):
    monkeypatch.setenv("SOFTFORM_TEST_OUTSIDE", "outside")
    processes = load(
        f"""<group>
          <set_env name="A" value="1"/>
          <node pkg="demo_pkg" exec="talker" name="first"><env name="B" value="$(env A)2"/></node>
        </group>
        {NODE.format("$(env SOFTFORM_TEST_OUTSIDE)")}
        {NODE.format("$(env SOFTFORM_TEST_NOWHERE fallback)")}"""
    )
    assert processes[0].environment == {"A": "1", "B": "12"}
    assert processes[1].environment == {}
    assert [p.name for p in processes[1:]] == ["outside", "fallback"]


def test_substitutions(load, prefix, tmp_path):
    (process,) = load(
        r"""<let name="pkg" value="demo_pkg"/>
        <node pkg="$(var pkg)" exec="talker">
          <remap from="a" to="$(find-pkg-share $(var pkg))/x"/>
          <remap from="b" to="$(find-pkg-prefix demo_pkg)"/>
          <remap from="c" to="$(dirname)"/>
          <remap from="d" to="\$(var pkg)"/>
          <remap from="e" to="$(env SOFTFORM_TEST_NOWHERE '')"/>
          <remap from="f" to="$(env SOFTFORM_TEST_NOWHERE 'two words')"/>
          <remap from="g" to="$(equals $(var pkg) demo_pkg)$(equals $(var pkg) '')"/>
        </node>"""
    )
    assert after(ros_arguments(process), "-r") == [
        f"a:={prefix}/share/demo_pkg/x",
        f"b:={prefix}",
        f"c:={tmp_path}",
        "d:=$(var pkg)",
        "e:=",
        "f:=two words",
        "g:=truefalse",
    ]


def test_include_passes_arguments_and_shares_the_namespace(load, tmp_path):
    (tmp_path / "part.launch.xml").write_text(f'<launch><arg name="who"/>{NODE.format("$(var who)")}</launch>')
    (process,) = load(
        """<push_ros_namespace namespace="soft"/>
        <include file="$(dirname)/part.launch.xml"><arg name="who" value="me"/></include>"""
    )
    assert process.name == "me"
    assert "__ns:=/soft" in process.command


def test_respawn_and_required(load):
    respawning, required = load(
        """<node pkg="demo_pkg" exec="talker" respawn="true" respawn_delay="1.5" respawn_max_retries="3"/>
        <node pkg="demo_pkg" exec="talker" on_exit="shutdown" output="screen"/>"""
    )
    assert (respawning.respawn, respawning.respawn_delay, respawning.respawn_max_retries) == (True, 1.5, 3)
    assert required.is_required and not respawning.is_required


def test_choices(load):
    body = '<arg name="a" default="x"><choice value="x"/><choice value="y"/></arg><let name="b" value="$(var a)"/>'
    assert load(body, a="y") == []
    with pytest.raises(LaunchFileError, match="argument 'a' is 'z'.*one of: x, y"):
        load(body, a="z")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<nodes/>", "<nodes> is not understood inside <launch>"),
        ('<node pkg="demo_pkg" exec="talker" machine="x"/>', "no attribute 'machine'"),
        ('<group><node pkg="demo_pkg" exec="talker"><group/></node></group>', "<group> is not understood"),
        ("words", "unexpected text 'words'"),
        ('<node exec="talker"/>', "lacks the attribute 'pkg'"),
        ('<node pkg="nowhere_pkg" exec="talker"/>', "'nowhere_pkg' is not installed.*softform build"),
        ('<node pkg="demo_pkg" exec="walker"/>', "no executable 'walker'. It has: talker"),
        ('<node pkg="demo_pkg" exec="talker" name="a b"/>', "'a b' is not a valid node name"),
        ('<node pkg="demo_pkg" exec="talker" namespace="a-b"/>', "'/a-b' is not a valid namespace"),
        ('<node pkg="demo_pkg" exec="talker" if="1" unless="0"/>', "both 'if' and 'unless'"),
        ('<node pkg="demo_pkg" exec="talker" if="maybe"/>', "'maybe', not a truth value"),
        ('<node pkg="demo_pkg" exec="talker" on_exit="restart"/>', "can only be shutdown"),
        ('<node pkg="demo_pkg" exec="talker" on_exit="shutdown" respawn="true"/>', "cannot both respawn"),
        ('<node pkg="demo_pkg" exec="talker" respawn_delay="-1"/>', "is negative"),
        ('<node pkg="demo_pkg" exec="talker" respawn_delay="soon"/>', "'soon', not a number"),
        ('<node pkg="demo_pkg" exec="talker" output="printer"/>', "neither screen"),
        ('<node pkg="demo_pkg" exec="talker"><param from="/nowhere.yaml"/></node>', "/nowhere.yaml does not exist"),
        ('<node pkg="demo_pkg" exec="talker"><param from="/a.yaml" name="a"/></node>', "takes nothing else"),
        ('<node pkg="demo_pkg" exec="talker"><param name="a"/></node>', "lacks the attribute 'value'"),
        ('<node pkg="demo_pkg" exec="talker"><param name="a" value="[]"/></node>', "is an empty list"),
        ('<node pkg="demo_pkg" exec="talker"><param name="a" value="[1, x]"/></node>', "a list of one type"),
        ('<node pkg="demo_pkg" exec="talker"><param name="a" value="x" type="int"/></node>', "not int"),
        ('<node pkg="demo_pkg" exec="talker"><param name="a" value="1" type="list_of_int"/></node>', "not list_of_int"),
        ('<node pkg="demo_pkg" exec="talker"><param name="a" value="x" type="complex"/></node>', "'complex' is not"),
        ('<let name="a" value="$(var b)"/>', "variable 'b' is not defined"),
        ('<let name="a" value="$(env SOFTFORM_TEST_NOWHERE)"/>', "SOFTFORM_TEST_NOWHERE is not set"),
        ('<let name="a" value="$(eval 1)"/>', r"\$\(eval 1\) is not understood"),
        ('<let name="a" value="$(var b"/>', "is not closed"),
        ('<arg name="needed" description="what for"/>', r"'needed' was not given \(what for\).*needed:=VALUE"),
        ('<include file="part.launch.xml"/>', "is relative"),
        ('<include file="$(dirname)/part.launch.xml"/>', "part.launch.xml does not exist"),
        ('<include file="$(dirname)/test.launch.xml"/>', "in a cycle: test.launch.xml -> test.launch.xml"),
        ('<group if="false"><oops/></group>', "<oops> is not understood"),
        ("<group>", "not well-formed"),
    ],
)
def test_errors_name_file_line_and_cause(load, tmp_path, body, message):
    with pytest.raises(LaunchFileError, match=message) as caught:
        load(f"\n{body}")
    assert str(caught.value).startswith(f"{tmp_path / 'test.launch.xml'}:{caught.value.line}: ")
    assert caught.value.line == (4 if body == "<group>" else 3)
    assert caught.value.next_step


def test_unknown_argument_lists_the_known_ones(load):
    with pytest.raises(SoftformError, match=r"no argument 'robt' \(the nearest is robot\). It has: robot"):
        load('<arg name="robot" default="membrane"/>', robt="membrane")


UNUSED = r"port:=/dev/ttyUSB0 is given and would not be used \(Hardware only: port\)."


@pytest.mark.parametrize(
    "use",
    [
        "",
        '<let name="port" value="elsewhere"/><let name="b" value="$(var port)"/>',
        '<let name="b" value="$(var port)" if="false"/>',
        '<let name="b" value="$(env USER $(var prt))"/><let name="prt" value="x"/>',
        '<group><let name="port" value="elsewhere"/></group>',
    ],
)
def test_an_argument_that_nothing_asks_for_is_rejected(load, use):
    declared = '<let name="prt" value="x"/><arg name="port" default="/dev/null" description="Hardware only: port."/>'
    with pytest.raises(SoftformError, match=UNUSED):
        load(declared + use, port="/dev/ttyUSB0")


@pytest.mark.parametrize(
    "use",
    [
        '<let name="b" value="$(var port)"/>',
        '<let name="b" value="x" if="$(equals $(var port) /dev/ttyUSB0)"/>',
        '<let name="port" value="/dev/ttyUSB0"/>',
        '<group><let name="b" value="in $(var port)"/></group>',
        '<node pkg="demo_pkg" exec="talker"><param name="port" value="$(var port)" type="str"/></node>',
    ],
)
def test_an_argument_that_is_asked_for_or_comes_true_is_used(load, use):
    load(f'<arg name="port" default="/dev/null"/>{use}', port="/dev/ttyUSB0")


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_value_is_rejected_where_the_default_is_not_empty(load, value):
    use = '<let name="b" value="$(var a)"/>'
    load(f'<arg name="a" default=""/>{use}', a="")
    for default in ('default="live"', ""):
        with pytest.raises(LaunchFileError, match="'a' is given and empty. Give a value"):
            load(f'<arg name="a" {default}/>{use}', a=value)


def test_the_home_folder_is_meant_by_a_tilde(load, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    body = '<arg name="a" default="~/live"/>' + NODE.format("n").replace(
        "/>", '><param name="p" value="$(var a)" type="str"/></node>'
    )
    assert ros_arguments(*load(body, a="~/x"))[-1] == 'p:="/home/me/x"'
    assert ros_arguments(*load(body))[-1] == 'p:="/home/me/live"'
    with pytest.raises(SoftformError, match="'~nobody_here/x' names the home of a user that is not there"):
        load(body, a="~nobody_here/x")


def parameters(tmp_path, text):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    return f'<param from="{file}"/>'


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ("/soft/actuation", None),
        ("/**", None),
        ("/soft/*", None),
        ("/**/actuation", None),
        ("/soft/scanner", None),  # not started this time
        ("actuation", r"'/actuation' is for none of the nodes .* \(the nearest is /soft/actuation\). They are: /soft/"),
        ("/soft/actuaton", "p.yaml: the section '/soft/actuaton' is for none of .*the nearest is /soft/actuation"),
        ("/sotf/actuation", "the nearest is /soft/actuation"),
        ("/soft/rig", "'/soft/rig' is for none of the nodes to which the file is given"),
    ],
)
def test_a_section_for_no_node_of_the_file_is_rejected(load, tmp_path, section, complaint):
    given = parameters(tmp_path, f"{section}:\n  ros__parameters:\n    rate: 1.0\n")
    body = f"""<push_ros_namespace namespace="soft"/>
    <node pkg="demo_pkg" exec="talker" name="actuation">{given}</node>
    <node pkg="demo_pkg" exec="talker" name="scanner" if="false">{given}</node>
    {NODE.format("rig")}"""
    if complaint is None:
        assert len(load(body)) == 2
        return
    with pytest.raises(SoftformError, match=complaint):
        load(body)


def test_a_wrong_parameter_file_ends_the_launch_before_any_node_starts(load, tmp_path):
    given = parameters(tmp_path, "/**:\n  ros__parameters:\n    rate: null\n")
    with pytest.raises(SoftformError, match="p.yaml: parameter rate is empty .* It is given to /n. Give a value"):
        load(NODE.format("n").replace("/>", f">{given}</node>"))


@pytest.mark.parametrize(("section", "is_used"), [("/**", False), ("/n", True)])
def test_a_parameter_of_a_file_that_the_launch_file_gives_too_is_not_passed_over(load, tmp_path, section, is_used):
    given = parameters(tmp_path, f"{section}:\n  ros__parameters:\n    robot: other\n")
    body = NODE.format("n").replace("/>", f'>{given}<param name="robot" value="membrane"/></node>')
    if is_used:  # the full name of the node is stronger
        assert ros_arguments(*load(body))[-1] == 'robot:="membrane"'
        return
    with pytest.raises(LaunchFileError, match=r"'robot' in .*p.yaml would not be used.* by the launch's argument"):
        load(body)


def test_missing_file(tmp_path):
    with pytest.raises(LaunchFileError, match="cannot be read"):
        load_launch_file(tmp_path / "nowhere.launch.xml")


def test_list_arguments(tmp_path):
    file = tmp_path / "a.launch.xml"
    file.write_text(
        """<launch><arg name="a" description="first"/>
        <group if="false"><arg name="b" default="$(var a)"><choice value="x"/></arg></group>
        <include file="$(dirname)/b"><arg name="c" value="1"/></include></launch>"""
    )
    assert [(a.name, a.default, a.choices) for a in list_arguments(file)] == [
        ("a", None, ()),
        ("b", "$(var a)", ("x",)),
    ]


def test_environment_of_this_process_is_untouched(load):
    before = dict(os.environ)
    load('<set_env name="SOFTFORM_TEST_SET" value="1"/>')
    assert dict(os.environ) == before
    assert Path.cwd().exists()
