"""The same stack is not launched twice: the second launch starts nothing, ends with 1, and leaves the first alone."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import yaml

from softform_core.claims import ClaimedError, claim
from softform_core.errors import SoftformError
from softform_core.paths import launch_dir
from softform_launch import sole_stack, substitutions
from softform_launch.launch_file import ProcessDescription, load_launch_file
from softform_launch.launched_stack import LaunchedStack
from softform_launch.sole_stack import hold_nodes


@pytest.fixture
def spaces_file(tmp_path, monkeypatch):
    """A launch file with two nodes of a namespace, which are `sleep`."""
    prefix = tmp_path / "install"
    (prefix / "share/ament_index/resource_index/packages").mkdir(parents=True)
    (prefix / "share/ament_index/resource_index/packages/demo_pkg").touch()
    (prefix / "lib/demo_pkg").mkdir(parents=True)
    sleeper = prefix / "lib/demo_pkg/sleeper"
    sleeper.write_text('#!/bin/sh\necho "up at $$"\nexec sleep 93\n')
    sleeper.chmod(0o755)
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join([str(prefix), os.environ.get("AMENT_PREFIX_PATH", "")]))
    file = tmp_path / "spaces.launch.xml"
    node = '<node pkg="demo_pkg" exec="sleeper" name="{}"/>'
    file.write_text(
        f"""<launch><arg name="namespace" default="lab"/><arg name="alone" default="false"/>
        <push_ros_namespace namespace="$(var namespace)"/>
        {node.format("actuation")}<group unless="$(var alone)">{node.format("planner")}</group></launch>"""
    )
    return file


@contextlib.contextmanager
def running(file, log, **arguments):
    with log.open("wb") as output, LaunchedStack(file, arguments, output) as launch:
        wait_for(log, "up at", launch)
        yield launch


def wait_for(log, text, launch):
    deadline = time.monotonic() + 20.0
    while text not in log.read_text():
        assert launch.exit_code is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def launched_again(file, *words):
    command = [sys.executable, "-m", "softform_launch.cli_launch", str(file), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=20)


def test_the_second_launch_is_refused_and_the_first_goes_on(spaces_file, tmp_path, ros_domain):
    with running(spaces_file, tmp_path / "log") as first:
        for words in ((), ("alone:=true",)):
            again = launched_again(spaces_file, *words)
            assert again.returncode == 1 and not again.stdout
            assert again.stderr.startswith(f"softform: A stack runs in /lab already (domain {ros_domain}, since 2")
            assert f"process {first.process.pid} on this machine): it has the node actuation." in again.stderr
            assert "./softform status" in again.stderr and "another namespace:=NAME" in again.stderr
        with running(spaces_file, tmp_path / "other", namespace="lab2") as other:
            assert other.exit_code is None
        assert first.exit_code is None
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        with pytest.raises(ClaimedError):  # what is left of it stops in order
            claim("launch of /lab/actuation", ros_domain)
    deadline = time.monotonic() + 15.0
    while True:
        with contextlib.suppress(ClaimedError), claim("launch of /lab/actuation", ros_domain):
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_launch_goes_on_where_the_one_before_has_ended(spaces_file, tmp_path):
    for log in ("one", "two"):
        with running(spaces_file, tmp_path / log) as launch:
            pass
        assert launch.exit_code == 0


def test_of_launches_at_the_same_moment_one_goes_on(spaces_file, tmp_path):
    logs = [(tmp_path / f"log{each}") for each in range(4)]
    with contextlib.ExitStack() as lasting:
        launches = [
            lasting.enter_context(LaunchedStack(spaces_file, output=lasting.enter_context(log.open("wb"))))
            for log in logs
        ]
        deadline = time.monotonic() + 30.0
        while sum(launch.exit_code is None for launch in launches) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert [launch.exit_code for launch in launches if launch.exit_code is not None] == 3 * [1]
        (last,) = [log for log, launch in zip(logs, launches, strict=True) if launch.exit_code is None]
        wait_for(last, "up at", launches[logs.index(last)])
    assert sum("up at" in log.read_text() for log in logs) == 1


def process(node, **environment):
    return ProcessDescription("node", ("true",), environment, node)


def test_names_are_held_in_the_domain_of_their_process(ros_domain):
    held = hold_nodes([process("/lab/a"), process("/lab/b", ROS_DOMAIN_ID="207"), process("")])
    with pytest.raises(SoftformError, match=r"in /lab already \(domain 207, since"):
        hold_nodes([process("/lab/b", ROS_DOMAIN_ID="207")])
    claim("launch of /lab/b", ros_domain).close()
    for one in held:
        one.close()
    with pytest.raises(SoftformError, match="ROS_DOMAIN_ID is 'abc'"):
        hold_nodes([process("/lab/a", ROS_DOMAIN_ID="abc")])


def test_the_network_is_looked_at_where_it_takes_part(monkeypatch):
    asked = []

    def look(command, **options):
        asked.append(command[1:])
        return subprocess.CompletedProcess(command, *answer)

    monkeypatch.setattr(sole_stack.subprocess, "run", look)
    held = hold_nodes([process("/lab/a")])
    assert not asked, "the loopback device has no other machines"
    network = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "FASTRTPS_DEFAULT_PROFILES_FILE": "", "ROS_DOMAIN_ID": "206"}
    answer = (0, "[XMLPARSER Error] no such file -> loadDefaultXMLFile\n", "")
    held += hold_nodes([process("/lab/a", **network), process(""), process("/lab/c", **network)])
    assert asked == [["-m", "softform_ros.alone", "/lab/a", "/lab/c"]]
    answer = (0, "[XMLPARSER Error] no such file -> loadDefaultXMLFile\n/lab/d", "")
    with pytest.raises(SoftformError, match=r"in /lab already \(domain 206, on the network\): it has the node d"):
        held += hold_nodes([process("/lab/d", **network)])
    answer = (1, "", "Traceback\nRuntimeError: no network\n")
    with pytest.raises(SoftformError, match="Nobody knows .*: RuntimeError: no network"):
        held += hold_nodes([process("/lab/e", **network)])
    for one in held:
        one.close()


SURROUNDINGS = ("ROS_AUTOMATIC_DISCOVERY_RANGE", "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS")
LOOPBACK = launch_dir().parent / "config" / "middleware" / "loopback.xml"


@pytest.mark.parametrize(
    ("given", "network", "reach"),
    [
        ({}, "false", "this machine"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, "false", "this machine"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}, "false", "network"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT", SURROUNDINGS[1]: str(LOOPBACK)}, "false", "this machine"),
        ({}, "true", "network"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}, "true", "network"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}, "true", "network"),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT", SURROUNDINGS[1]: str(LOOPBACK)}, "true", "network"),
    ],
)
@pytest.mark.parametrize("file", ["softform", "driver", "replay"])
def test_without_a_word_nodes_are_reached_from_this_machine_alone(monkeypatch, file, given, network, reach):
    monkeypatch.setattr(substitutions, "_output_of", lambda line, context, element: "true")
    for name in SURROUNDINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    processes = load_launch_file(launch_dir() / f"{file}.launch.xml", {"network": network})
    assert {sole_stack.network_reach({**os.environ, **each.environment}) for each in processes} == {reach}
    if reach == "this machine":
        # LOCALHOST by itself lets computers in that name this one as a peer.
        assert {each.environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] for each in processes} <= {"SYSTEM_DEFAULT"}
    for each in processes:
        if each.name == "actuation":
            assert f"network:={network}" in each.command
    assert len({each.environment["SOFTFORM_LAUNCH"] for each in processes}) == 1


def test_each_launch_is_told_from_others_and_knows_what_runs_elsewhere():
    def manager(**arguments):
        *_, last = load_launch_file(launch_dir() / "softform.launch.xml", arguments)
        return last

    assert manager().environment["SOFTFORM_LAUNCH"] != manager().environment["SOFTFORM_LAUNCH"]
    assert 'elsewhere:=["", ""]' in manager().command
    assert 'elsewhere:=["actuation", ""]' in manager(driver="false").command


def test_containers_stay_on_their_machine_unless_told_otherwise():
    services = yaml.safe_load((launch_dir().parent / "docker" / "compose.yaml").read_text())["services"]
    for service in services.values():
        # What compose makes of them where nobody has set a variable.
        environment = {
            name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) for name, value in service["environment"].items()
        }
        assert sole_stack.network_reach(environment) == "this machine" and environment["ROS_DOMAIN_ID"] != "0"
        assert "network:=${SOFTFORM_NETWORK:-false}" in service["command"]
