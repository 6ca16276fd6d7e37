"""A launch that is to be recorded ends before anything moves if it cannot be, and says so if its recorder dies."""

import re
import time

import psutil
import pytest

from softform_core.paths import launch_dir
from softform_interfaces.msg import BringupState
from softform_launch.launch_file import load_launch_file
from softform_launch.launched_stack import LaunchedStack
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import LATCHED_STATE

LAUNCH = """
<launch>
  <push_ros_namespace namespace="recorded"/>
  <node pkg="softform_recording" exec="bag_recorder_node" name="bag_recorder">
    <param name="bag" value="FOLDER/bag" type="str"/><param name="topics" value="[bringup_state]"/>
  </node>
  <node pkg="softform_recording" exec="bag_recorder_node" name="driver">
    <param name="bag" value="FOLDER/driver" type="str"/>
  </node>
  <node pkg="softform_bringup" exec="bringup_manager_node" name="bringup_manager" on_exit="shutdown">
    <param name="nodes" value="bag_recorder,driver" value-sep=","/><param name="watch_period" value="0.2"/>
  </node>
</launch>
"""
"""What stands for the driver makes a folder once it is activated."""


@pytest.fixture
def launched(tmp_path):
    file = tmp_path / "recorded.launch.xml"
    file.write_text(LAUNCH.replace("FOLDER", str(tmp_path)))
    with (tmp_path / "log").open("wb") as log:
        yield LaunchedStack(file, output=log)


def wait_for(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_launch_that_cannot_be_recorded_ends_before_anything_is_brought_up(tmp_path, launched):
    (tmp_path / "bag").mkdir()
    with launched:
        wait_for(lambda: launched.exit_code is not None)
    assert launched.exit_code == 1
    assert "bag_recorder failed to activate" in (said := (tmp_path / "log").read_text()) and "exists already" in said
    assert not (tmp_path / "driver").exists() and not list((tmp_path / "bag").iterdir())


def test_a_stack_whose_recorder_dies_is_degraded_and_ends_with_an_error(tmp_path, launched):
    states = []
    with BackgroundNode("watcher", "recorded") as node, launched:
        node.create_subscription(BringupState, "bringup_state", states.append, LATCHED_STATE)
        wait_for(lambda: states and states[-1].state == BringupState.ACTIVE)
        assert (tmp_path / "driver").is_dir()
        nodes = psutil.Process(launched.process.pid).children(recursive=True)
        (recorder,) = [one for one in nodes if "__node:=bag_recorder" in one.cmdline()]
        recorder.kill()
        wait_for(lambda: states[-1].state == BringupState.DEGRADED)
        assert states[-1].reason == "bag_recorder does not answer"
        assert launched.stop() == 1


@pytest.mark.parametrize(("record", "first"), [("true", "bag_recorder"), ("false", "rig")])
def test_the_recorder_comes_up_before_all_others(record, first):
    processes = load_launch_file(launch_dir() / "softform.launch.xml", {"record": record})
    (manager,) = [one for one in processes if one.name == "bringup_manager"]
    (nodes,) = [word for word in manager.command if word.startswith("nodes:=")]
    assert re.findall(r"\w+", nodes)[1] == first
