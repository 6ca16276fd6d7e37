"""Recordings read back with `rosbags`: in order, on a full disk, after a crash, and through the node."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml
from ament_index_python.packages import get_package_share_directory
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Reader
from std_msgs.msg import String

from softform_core.errors import SoftformError
from softform_interfaces.msg import ActuatorState
from softform_recording.bag_reading import bag_parts
from softform_recording.bag_recorder import BagRecorder, RecordingStoppedError
from softform_recording.message_definitions import ensure_defined, standard_definitions
from softform_recording.salvage import salvage_bag
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE, LATCHED_STATE
from softform_ros.service_calls import call_service

ACTUATOR_STATE_TYPE = "softform_interfaces/msg/ActuatorState"


def actuator_state(number):
    message = ActuatorState(name=["c1", "c2"], value=[float(number), 2.0 * number], status=[1, 2])
    return serialize_message(message)


def read(folder):
    """Return (topic, time, message) of every message."""
    definitions = standard_definitions()
    ensure_defined(definitions, ACTUATOR_STATE_TYPE)
    with Reader(bag_parts(folder)[0]) as reader:
        return [(c.topic, t, definitions.deserialize_cdr(data, c.msgtype)) for c, t, data in reader.messages()]


def record(folder, numbers, **keywords):
    recorder = BagRecorder(folder, **keywords)
    recorder.add_topic("/p", ACTUATOR_STATE_TYPE)
    for number in numbers:
        recorder.write("/p", 1000 + number, actuator_state(number))
    return recorder


def test_round_trip(tmp_path):
    recorder = record(tmp_path / "deep" / "bag", range(10))
    recorder.add_topic("/text", "std_msgs/msg/String")
    recorder.write("/text", 2000, serialize_message(String(data="hello")))
    recorder.close()
    recorder.close()
    recorder.write("/text", 2001, b"")
    messages = read(recorder.folder)
    assert [t for topic, t, _ in messages if topic == "/p"] == list(range(1000, 1010))
    np.testing.assert_array_equal(messages[3][2].value, [3.0, 6.0])
    assert messages[3][2].name == ["c1", "c2"]
    assert messages[-1][2].data == "hello"
    assert recorder.message_count == 11
    assert sorted(path.name for path in recorder.folder.iterdir()) == ["bag.mcap", "metadata.yaml"]


def standard_hash():
    definitions = standard_definitions()
    ensure_defined(definitions, ACTUATOR_STATE_TYPE)
    return definitions.hash_rihs01(ACTUATOR_STATE_TYPE)


def test_type_hashes_are_those_of_ros(tmp_path):
    """`ros2 bag` compares them with its own."""
    share = Path(get_package_share_directory("softform_interfaces"))
    description = json.loads((share / "msg" / "ActuatorState.json").read_text())
    (expected,) = [
        entry["hash_string"] for entry in description["type_hashes"] if entry["type_name"] == ACTUATOR_STATE_TYPE
    ]
    recorder = record(tmp_path / "bag", [1])
    recorder.close()
    metadata = yaml.safe_load((recorder.folder / "metadata.yaml").read_text())
    (topic,) = metadata["rosbag2_bagfile_information"]["topics_with_message_count"]
    assert topic["topic_metadata"]["type_description_hash"] == expected


def test_large_bags_go_on_in_a_new_folder(tmp_path):
    recorder = record(tmp_path / "bag", range(100), largest_bag=4000)
    recorder.flush()
    recorder.write("/p", 9999, actuator_state(1))
    recorder.close()
    assert [folder.name for folder in recorder.folders] == ["bag", "bag_2"]
    assert [len(read(folder)) for folder in recorder.folders] == [100, 1]


def test_long_bags_go_on_in_a_new_folder(tmp_path):
    recorder = BagRecorder(tmp_path / "bag", longest_bag=2e-9)
    recorder.add_topic("/p", ACTUATOR_STATE_TYPE)
    for number in range(4):  # 1 ns apart
        recorder.write("/p", 1000 + number, actuator_state(number))
        recorder.flush()
    recorder.write("/p", 1004, actuator_state(4))
    recorder.close()
    assert [len(read(folder)) for folder in recorder.folders] == [4, 1]
    assert recorder.message_count == 5


def test_another_definition_at_the_publisher_is_rejected(tmp_path):
    recorder = BagRecorder(tmp_path / "bag")
    with pytest.raises(SoftformError, match="another definition"):
        recorder.add_topic("/p", ACTUATOR_STATE_TYPE, (), "RIHS01_" + 64 * "0")
    recorder.add_topic("/p", ACTUATOR_STATE_TYPE, (), standard_hash())
    recorder.close()


def test_an_existing_folder_is_rejected(tmp_path):
    (tmp_path / "bag").mkdir()
    with pytest.raises(SoftformError, match="exists already"):
        BagRecorder(tmp_path / "bag")
    assert list((tmp_path / "bag").iterdir()) == []


@pytest.mark.parametrize(("there", "name"), [("walk_2", "walk"), ("walk", "walk_2")])
def test_a_name_that_would_be_taken_for_a_part_of_another_recording_is_rejected(tmp_path, there, name):
    BagRecorder(tmp_path / there).close()
    with pytest.raises(SoftformError, match="would"):
        BagRecorder(tmp_path / name)
    BagRecorder(tmp_path / "walk_b").close()
    BagRecorder(tmp_path / "7_2").close()


def made_package(folder, name, **definitions):
    """An installed package of messages that nobody has built."""
    (folder / "share" / "ament_index" / "resource_index" / "packages").mkdir(parents=True, exist_ok=True)
    (folder / "share" / "ament_index" / "resource_index" / "packages" / name).touch()
    (folder / "share" / name / "msg").mkdir(parents=True)
    for message, text in definitions.items():
        (folder / "share" / name / "msg" / f"{message}.msg").write_text(text)


def test_messages_of_several_packages_in_one_another_are_recorded(tmp_path, monkeypatch):
    made_package(tmp_path, "lab_sensors", Force="float64 newton\n", Odd="wstring name\n")
    made_package(tmp_path, "lab_msgs", Trial="lab_sensors/Force[] forces\nstd_msgs/Header header\n", Bad="?? what\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path), prepend=":")
    recorder = BagRecorder(tmp_path / "bag")
    recorder.add_topic("/trial", "lab_msgs/msg/Trial")
    with pytest.raises(SoftformError, match="lab_msgs/msg/Bad is not understood"):
        recorder.add_topic("/bad", "lab_msgs/msg/Bad")
    recorder.write("/trial", 1, bytes(100))
    recorder.close()
    with Reader(tmp_path / "bag") as bag:
        assert [(c.topic, c.msgtype) for c in bag.connections] == [("/trial", "lab_msgs/msg/Trial")]


def test_unknown_types_are_rejected(tmp_path):
    recorder = BagRecorder(tmp_path / "bag")
    with pytest.raises(SoftformError, match="'nowhere_msgs' .* is not installed"):
        recorder.add_topic("/x", "nowhere_msgs/msg/Nothing")
    with pytest.raises(SoftformError, match="does not define"):
        recorder.add_topic("/x", "softform_interfaces/msg/Nothing")
    recorder.close()


@pytest.mark.parametrize("limit", [20_000, 300_000, 3_000_000])
def test_file_size_limit_of_the_system(tmp_path, limit):
    """The kernel rejects to let the file grow: writing fails for real, in the middle of a record."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = BagRecorder(tmp_path / "bag")  # its reserve must fit
    recorder.add_topic("/p", ACTUATOR_STATE_TYPE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(RecordingStoppedError, match="File too large"):
            for number in range(100_000):
                recorder.write("/p", 1000 + number, actuator_state(number))
                if number % 50 == 0:
                    recorder.flush()
        recorder.write("/p", 0, actuator_state(0))
        recorder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    messages = read(recorder.folder)
    assert len(messages) == recorder.message_count > 50
    assert [t for _, t, _ in messages] == list(range(1000, 1000 + len(messages)))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("mounting a disk needs more rights")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk(small_disk):
    recorder = BagRecorder(small_disk / "bag")
    recorder.add_topic("/p", ACTUATOR_STATE_TYPE)
    with pytest.raises(RecordingStoppedError, match="No space left on device.*Free space"):
        for number in range(100_000):
            recorder.write("/p", 1000 + number, actuator_state(number))
    messages = read(recorder.folder)
    assert len(messages) == recorder.message_count > 5000
    recorder.write("/p", 200_000, actuator_state(0))  # into nowhere
    assert recorder.message_count == len(messages)


def test_full_disk_at_closing(small_disk):
    recorder = record(small_disk / "bag", range(5000))
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
        while True:
            filler.write(b"x" * 4096)
    with pytest.raises(RecordingStoppedError) as caught:
        recorder.close()
    assert str(recorder.folder) in str(caught.value)


def test_a_disk_without_room_for_a_bag(small_disk):
    (small_disk / "filler").write_bytes(b"x" * 1_900_000)
    with pytest.raises(SoftformError, match="cannot be written: No space left"):
        BagRecorder(small_disk / "bag")
    assert not (small_disk / "bag").exists()


@pytest.fixture
def talker():
    """A node with a best-effort-compatible and a latched publisher, in a namespace of its own."""
    with BackgroundNode("talker", f"test_{os.getpid()}_{time.monotonic_ns()}") as node:
        node.actuator_state = node.create_publisher(ActuatorState, "actuator_state", ACTUATOR_STATE)
        node.state = node.create_publisher(String, "state", LATCHED_STATE)
        yield node


@contextmanager
def recorder_node(talker, *parameters):
    """The process of a node `bag_recorder` in the talker's namespace."""
    words = ["--ros-args", "-r", f"__ns:={talker.get_namespace()}", *parameters]
    command = "from softform_recording.bag_recorder_node import main; main()"
    process = subprocess.Popen([sys.executable, "-c", command, *words])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lead(talker, *steps):
    """Whether each transition of the node `bag_recorder` succeeds."""
    answers = []
    for step in steps:
        request = ChangeState.Request()
        request.transition.id = step
        answer = call_service(talker, "bag_recorder", ChangeState, "bag_recorder/change_state", request, 30.0)
        answers.append(answer.success)
    return answers


UP = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE


def test_a_folder_that_is_there_is_not_recorded_into(tmp_path, talker):
    """The bring-up manager then ends the launch before any other node is brought up."""
    (tmp_path / "bag").mkdir()
    told = []
    talker.create_subscription(DiagnosticArray, "/diagnostics", lambda m: told.extend(m.status), 10)
    with recorder_node(talker, "-p", f"bag:={tmp_path / 'bag'}", "-p", "topics:=[state]"):
        assert lead(talker, *UP) == [True, False]
        deadline = time.monotonic() + 10.0
        while not any("bag exists already" in one.message for one in told if one.name.endswith("/bag_recorder")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert not list((tmp_path / "bag").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_node_records_the_topics_and_closes_on_signals(tmp_path, talker, number):
    folder = tmp_path / "bag"
    topics = "topics:=[actuator_state, state, never_there]"
    with recorder_node(talker, "-p", f"bag:={folder}", "-p", topics) as process:
        assert lead(talker, *UP) == [True, True]
        talker.state.publish(String(data="latched before the recorder came"))
        deadline = time.monotonic() + 30.0
        while talker.actuator_state.get_subscription_count() == 0 or talker.state.get_subscription_count() == 0:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        for value in range(20):
            talker.actuator_state.publish(ActuatorState(name=["c1"], value=[float(value)]))
            time.sleep(0.02)
        time.sleep(1.5 if number == signal.SIGKILL else 0.3)
        process.send_signal(number)
        exit_code = process.wait(30)
    if number == signal.SIGKILL:
        salvage_bag(folder, folder := tmp_path / "whole")
    else:
        assert exit_code == 0
    messages = read(folder)
    found = [m.value[0] for topic, _, m in messages if topic.endswith("actuator_state")]
    assert found == [float(value) for value in range(20)]
    assert [m.data for topic, _, m in messages if topic.endswith("/state")] == ["latched before the recorder came"]
    with Reader(folder) as reader:
        profiles = {
            c.topic.rsplit("/", 1)[1]: c.ext.offered_qos_profiles[0].durability.name for c in reader.connections
        }
    assert profiles == {"actuator_state": "VOLATILE", "state": "TRANSIENT_LOCAL"}
