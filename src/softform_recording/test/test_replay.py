"""Recordings replayed: as heard, and never beside a driver."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.rosbag2 import Reader
from std_msgs.msg import Header, String

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorState, DriverState
from softform_recording.bag_reading import bag_parts
from softform_recording.bag_recorder import BagRecorder
from softform_recording.cli_record import record as record_command
from softform_recording.cli_replay import replay as replay_command
from softform_recording.record import background_recording
from softform_recording.replayed_topics import OpenRecording
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import stamp_from_seconds

ROBOT = load_robot("membrane")
ACTUATOR_STATE_TYPE, TEXT = "softform_interfaces/msg/ActuatorState", "std_msgs/msg/String"


def wait_for(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def actuator_state(number):
    header = Header(stamp=stamp_from_seconds(1000.0 + 0.1 * number))
    values = [5000.0 * ((7 * number + 3 * chamber) % 11) / 11 for chamber in range(9)]
    return ActuatorState(header=header, name=ROBOT.actuators, value=values, status=[3] * 9)


def contents(folder):
    """Messages of each topic as (ns, bytes), over all parts of a recording."""
    found = {}
    with OpenRecording(bag_parts(folder)) as recording:
        for topic, moment, message in recording.messages(recording.topics([], with_commands=True)):
            found.setdefault(topic, []).append((moment, message))
    return found


def made_bag(folder, topics, times, **limits):
    """A bag with a text on every topic at each time, s; a string names a type other than String."""
    bag = BagRecorder(folder, **limits)
    for topic, message_type in topics.items():
        bag.add_topic(topic, message_type)
    for moment in times:
        for topic, message_type in topics.items():
            message = String(data=f"{topic} {moment}") if message_type == TEXT else actuator_state(int(10 * moment))
            bag.write(topic, int(1e9 * (100 + moment)), serialize_message(message))
        bag.flush()
    bag.close()
    return folder


def replay(*words):
    return CliRunner().invoke(replay_command, [str(word) for word in words])


@pytest.fixture
def bench():
    with BackgroundNode("bench", f"bench_{os.getpid()}_{time.monotonic_ns()}") as node:
        yield node


def listen(node, topic, kind=String, profile=qos.ACTUATOR_STATE):
    heard = []
    node.create_subscription(kind, topic, heard.append, profile)
    return heard


def test_commands_are_replayed_only_on_demand(tmp_path, bench):
    name = bench.get_namespace()
    topics = {f"{name}/{topic}": TEXT for topic in ("text", "actuator_command", "reach/_action/feedback", "stop")}
    bag = made_bag(tmp_path / "bag", topics, [0.0, 0.1])
    texts, commands = listen(bench, "text"), listen(bench, "actuator_command")
    result = replay(bag)
    assert result.exit_code == 0 and result.output.count("it commands hardware") == 3, result.output
    wait_for(lambda: len(texts) == 2)
    assert not commands
    rejected = replay(bag, "--topics", "actuator_command")
    assert isinstance(rejected.exception, SoftformError) and "Add --commands" in str(rejected.exception)
    assert replay(bag, "--commands", "--topics", "actuator_command").exit_code == 0
    wait_for(lambda: len(commands) == 2)


def announce(node):
    node.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)


def read_commands(node):
    node.create_subscription(String, "actuator_command", lambda message: None, qos.ACTUATOR_STATE)


@pytest.mark.parametrize(
    ("come_as", "said"),
    [(announce, "A driver is there"), (read_commands, "it may be a driver")],
    ids=["state", "reader"],
)
def test_a_driver_that_comes_ends_a_replay(tmp_path, bench, come_as, said):
    name = bench.get_namespace()
    bag = made_bag(tmp_path / "bag", {f"{name}/actuator_command": TEXT}, [0.0, 0.1, *np.arange(2.0, 30.0, 0.5)])
    commands = listen(bench, "actuator_command")

    def come():
        wait_for(lambda: len(commands) == 2)
        come_as(bench)

    driver = threading.Thread(target=come)
    driver.start()
    began = time.monotonic()
    result = replay(bag, "--commands")
    driver.join()
    assert said in str(result.exception) and time.monotonic() - began < 25.0
    assert len(commands) == 2
    if come_as is announce:  # and it does not begin beside one
        assert f"{name}/bench publishes" in str(replay(bag, "--commands").exception) and len(commands) == 2


def test_topics_that_are_published_here_are_left_out(tmp_path, bench):
    name = bench.get_namespace()
    bag = made_bag(tmp_path / "bag", {f"{name}/text": TEXT, f"{name}/other": TEXT}, [0.0])
    publisher = bench.create_publisher(String, "text", qos.ACTUATOR_STATE)
    texts, others = listen(bench, "text"), listen(bench, "other")
    assert "a node that runs publishes it" in replay(bag).output
    wait_for(lambda: len(others) == 1)
    assert not texts
    bench.destroy_publisher(publisher)


def test_a_topic_is_left_to_a_node_that_comes_to_publish_it(tmp_path, bench):
    name = bench.get_namespace()
    times = [0.0, *np.arange(2.0, 6.0, 0.5)]
    bag = made_bag(tmp_path / "bag", {f"{name}/text": TEXT, f"{name}/other": TEXT}, times)
    texts, others = listen(bench, "text"), listen(bench, "other")

    def come():
        wait_for(lambda: texts)
        bench.create_publisher(String, "text", qos.ACTUATOR_STATE)

    publisher = threading.Thread(target=come)
    publisher.start()
    result = replay(bag)
    publisher.join()
    assert f"{name}/text is left out from here on" in result.output and f"{len(times) + 1} messages" in result.output
    wait_for(lambda: len(others) == len(times))
    assert len(texts) == 1


def test_parts_are_replayed_in_order_and_a_crash_is_salvaged_into_a_new_bag(tmp_path):
    bag = made_bag(tmp_path / "bag", {"/text": TEXT}, [0.0, 1.0, 2.0, 3.0, 4.0], longest_bag=1.5)
    times = [int(1e9 * (100 + second)) for second in range(5)]
    assert (tmp_path / "bag_2").is_dir() and [moment for moment, _ in contents(bag)["/text"]] == times
    (tmp_path / "bag_2" / "metadata.yaml").unlink()
    file = tmp_path / "bag_2" / "bag_2.mcap"
    file.write_bytes(file.read_bytes()[:-20])
    assert f"record --salvage {bag} --output NEW" in str(replay(bag).exception)
    told = CliRunner().invoke(record_command, ["--salvage", str(bag), "--output", str(tmp_path / "whole")])
    assert "holds 5 messages" in told.output and not list(tmp_path.glob("bag_2/metadata.yaml"))
    assert [moment for moment, _ in contents(tmp_path / "whole")["/text"]] == times


def test_another_definition_of_a_type_is_rejected(tmp_path):
    bag = made_bag(tmp_path / "bag", {"/state": ACTUATOR_STATE_TYPE, "/text": TEXT}, [0.0])
    metadata = bag / "metadata.yaml"
    with Reader(bag) as reader:
        (known,) = [connection.digest for connection in reader.connections if connection.topic == "/state"]
    metadata.write_text(metadata.read_text().replace(known, "RIHS01_" + 64 * "0"))
    with OpenRecording(bag_parts(bag)) as recording:
        assert [topic.name for topic in recording.topics([], False)] == ["/text"]
        assert "another definition" in recording.left_out["/state"]
        with pytest.raises(SoftformError, match="another definition"):
            recording.topics(["state"], False)
        with pytest.raises(SoftformError, match="No topic of the bag is named nothing"):
            recording.topics(["nothing"], False)


def test_a_replay_of_nothing_says_so(tmp_path):
    assert "There is no bag" in str(replay(tmp_path / "nowhere").exception)
    (tmp_path / "empty").mkdir()
    assert "no metadata.yaml, and no files" in str(replay(tmp_path / "empty").exception)


def test_the_record_command_keeps_every_message_of_fast_topics_and_closes_on_a_signal(tmp_path, bench):
    """Three topics at 200 Hz, twice the stack's rates in all."""
    topics = ["fast_1", "fast_2", "fast_3"]
    publishers = [bench.create_publisher(String, topic, qos.ACTUATOR_STATE) for topic in topics]
    words = ["--namespace", bench.get_namespace(), "--output", str(tmp_path / "bag"), "--json"]
    words += [word for topic in [*topics, "never_there"] for word in ("--topics", topic)]
    command = "from softform_recording.cli_record import record; record(prog_name='softform record')"
    process = subprocess.Popen([sys.executable, "-c", command, *words], stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: all(publisher.get_subscription_count() for publisher in publishers))
        for number in range(300):
            for publisher in publishers:
                publisher.publish(String(data=str(number)))
            time.sleep(0.005)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        figures = json.loads(process.communicate(timeout=30)[0])
    finally:
        process.kill()
    assert process.returncode == 0
    assert (figures["received"], figures["written"], figures["dropped"], figures["lost"]) == (900, 900, 0, 0)
    assert all(len(messages) == 300 for messages in contents(tmp_path / "bag").values())


def test_the_record_command_says_that_nothing_came(tmp_path, bench):
    words = ["--namespace", bench.get_namespace(), "--duration", "0.5", "--output", str(tmp_path / "bag")]
    result = CliRunner().invoke(record_command, words)
    assert "No message came" in str(result.exception) and (tmp_path / "bag" / "metadata.yaml").is_file()


def test_publishers_that_come_later_and_offer_less_are_recorded_too(tmp_path, bench):
    """The first one is latched and reliable; the second is what a sensor's driver offers."""
    first = bench.create_publisher(String, "target", qos.LATCHED_STATE)
    first.publish(String(data="first"))
    with background_recording(["target"], tmp_path / "bag", bench.get_namespace()) as recorder:
        wait_for(lambda: recorder.counts.received == 1)
        second = bench.create_publisher(String, "target", qos.ACTUATOR_STATE_READER)
        wait_for(second.get_subscription_count)
        second.publish(String(data="second"))
        wait_for(lambda: recorder.counts.received >= 2)
    (messages,) = contents(tmp_path / "bag").values()
    assert [deserialize_message(message, String).data for _, message in messages] == ["first", "second"]


def test_a_part_that_was_only_just_begun_does_not_spoil_those_before_it(tmp_path):
    made_bag(tmp_path / "bag", {"/text": TEXT}, [0.0, 1.0])
    (tmp_path / "bag_2").mkdir()
    (tmp_path / "bag_2" / "bag_2.mcap").touch()
    assert len(contents(tmp_path / "bag")["/text"]) == 2
