"""Bags of earlier versions: rejected with the command that converts them, and replayed once converted."""

import numpy as np
import pytest
from click.testing import CliRunner
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from std_msgs.msg import String

from softform_core.cli.convert import convert
from softform_core.errors import SoftformError
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState, Surface
from softform_recording.replayed_topics import OpenRecording, bag_parts

# The definitions as earlier versions had them, without comments.
CHAMBER_PRESSURES = """
uint8 VENTED=0
uint8 REGULATING=1
uint8 SETTLED=2
uint8 FAULT=3
std_msgs/Header header
string[] name
float64[] pressure
uint8[] status
"""
FIRST_SURFACE = """
std_msgs/Header header
uint32 rows
uint32 cols
uint32 degree
geometry_msgs/Point[] control_points
float64 kernel_width
geometry_msgs/Point[] kernel_centers
geometry_msgs/Vector3[] warp_coefficients
"""
ONE_PATCH_SURFACE = """
std_msgs/Header header
string patch
bool stale
uint32 rows
uint32 cols
uint32 degree
bool periodic
geometry_msgs/Point[] control_points
float64 kernel_width
geometry_msgs/Point[] kernel_centers
geometry_msgs/Vector3[] warp_coefficients
"""
FIRST_DRIVER_STATE = """
uint8 VENTED=0
uint8 RUNNING=1
uint8 FAULT=2
uint8 OFFLINE=3
std_msgs/Header header
uint8 state
string reason
"""
PACKAGE = "softform_interfaces/msg/"
LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    QosTime(0, 0),
    QosTime(0, 0),
    QosLiveliness.AUTOMATIC,
    QosTime(0, 0),
    avoid_ros_namespace_conventions=False,
)
TIMES = [1_000_000_000, 1_500_000_000]


def earlier_bag(folder, surface=ONE_PATCH_SURFACE):
    """What an earlier version recorded of a robot with two chambers, and a text, at each of `TIMES`."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in (
        ("ChamberPressures", CHAMBER_PRESSURES), ("Surface", surface), ("DriverState", FIRST_DRIVER_STATE)
    ):  # fmt: skip
        store.register(get_types_from_msg(definition, PACKAGE + name))
    types = store.types
    place, vector = types["geometry_msgs/msg/Point"], types["geometry_msgs/msg/Vector3"]
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        bag.set_custom_data("softform.lost", "3")

        def write(topic, message_type, make, profiles=()):
            connection = bag.add_connection(topic, message_type, typestore=store, offered_qos_profiles=profiles)
            for moment in TIMES:
                stamp = types["builtin_interfaces/msg/Time"](*divmod(moment, 1_000_000_000))
                message = make(types["std_msgs/msg/Header"](stamp, "base_link"), moment * 1e-9)
                data = message if isinstance(message, bytes) else store.serialize_cdr(message, message_type)
                bag.write(connection, moment, data)

        def pressures(status):
            return lambda header, seconds: types[f"{PACKAGE}ChamberPressures"](
                header, ["c1", "c2"], np.array([1000.0 * seconds, 2500.0]), np.array(status, dtype=np.uint8)
            )

        def of_surface(header, seconds):
            first = {} if "patch" not in surface else {"patch": "left", "stale": True, "periodic": True}
            first |= {"columns" if "columns" in surface else "cols": 5}
            points = [place(0.01 * row, 0.02 * column, seconds) for row in range(4) for column in range(5)]
            return types[f"{PACKAGE}Surface"](
                header=header, rows=4, degree=3, control_points=points, kernel_width=7.0,
                kernel_centers=[place(0.1, 0.2, 0.3)], warp_coefficients=[vector(4.0, 5.0, 6.0)], **first,
            )  # fmt: skip

        write("/lab/pressure_command", f"{PACKAGE}ChamberPressures", pressures([]))
        write("/lab/pressure_state", f"{PACKAGE}ChamberPressures", pressures([1, 2]))
        write("/lab/predicted_surface", f"{PACKAGE}Surface", of_surface)
        state = types[f"{PACKAGE}DriverState"]
        write("/lab/driver_state", f"{PACKAGE}DriverState", lambda header, _: state(header, 1, "all well"), [LATCHED])
        write(
            "/lab/text", "std_msgs/msg/String", lambda _, seconds: bytes(serialize_message(String(data=str(seconds))))
        )
    return folder


def run(*arguments):
    done = CliRunner().invoke(convert, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_an_earlier_bag_names_the_command_and_is_replayed_once_converted(tmp_path):
    bag = earlier_bag(tmp_path / "walk")
    with OpenRecording(bag_parts(bag)) as recording:
        assert [topic.name for topic in recording.topics([], with_commands=True)] == ["/lab/text"]
        assert len(recording.left_out) == 4
        assert all(f"softform convert {bag}" in reason for reason in recording.left_out.values())
        for name in ("pressure_state", "predicted_surface"):
            with pytest.raises(SoftformError, match=f"Convert it: ./softform convert {bag}"):
                recording.topics([name], with_commands=False)
    before = (bag / "walk.mcap").read_bytes()

    assert "the original is walk.old" in run(bag)

    assert (tmp_path / "walk.old" / "walk.mcap").read_bytes() == before
    with OpenRecording(bag_parts(bag)) as recording:
        topics = {topic.name: topic for topic in recording.topics([], with_commands=True)}
        assert not recording.left_out
        heard = {name: [] for name in topics}
        for name, moment, message in recording.messages(list(topics.values())):
            heard[name].append((moment, deserialize_message(message, topics[name].message_class)))
    assert all([moment for moment, _ in messages] == TIMES for messages in heard.values())
    check_actuators(heard)
    check_surface(heard["/lab/predicted_surface"][1][1], name="left", stale=True, periodic=True)
    state = heard["/lab/driver_state"][0][1]
    assert (state.state, state.reason, state.holder) == (DriverState.RUNNING, "all well", "")
    assert [message.data for _, message in heard["/lab/text"]] == ["1.0", "1.5"]
    with Reader(bag) as reader:
        (latched,) = [one for one in reader.connections if one.topic == "/lab/driver_state"]
        assert latched.ext.offered_qos_profiles == [LATCHED] and reader.storage.metadata.custom == {
            "softform.lost": "3"
        }

    assert "nothing to convert" in run(bag / "walk.mcap")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["walk", "walk.old"]


def check_actuators(heard):
    command, state = heard["/lab/actuator_command"][1][1], heard["/lab/actuator_state"][1][1]
    assert isinstance(command, ActuatorCommand) and isinstance(state, ActuatorState)
    for message in (command, state):
        assert (message.name, message.unit, list(message.value)) == (["c1", "c2"], ["Pa", "Pa"], [1500.0, 2500.0])
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == (1, 500_000_000)
    assert list(state.status) == [ActuatorState.MOVING, ActuatorState.SETTLED]


def check_surface(surface, **of_patch):
    assert isinstance(surface, Surface) and surface.stale == of_patch.pop("stale")
    (patch,) = surface.patches
    assert {key: getattr(patch, key) for key in of_patch} == of_patch
    assert (patch.rows, patch.cols, patch.degree, len(patch.control_points)) == (4, 5, 3, 20)
    last = patch.control_points[-1]
    assert (last.x, last.y, last.z) == (0.03, 0.08, 1.5)
    assert (surface.kernel_width, surface.kernel_centers[0].z, surface.warp_coefficients[0].y) == (7.0, 0.3, 5.0)


def test_a_surface_from_before_patches_had_names_becomes_the_patch_of_a_membrane(tmp_path):
    bag = earlier_bag(tmp_path / "walk", FIRST_SURFACE)
    run(bag)
    with OpenRecording(bag_parts(bag)) as recording:
        (topic,) = recording.topics(["predicted_surface"], with_commands=False)
        *_, (_, _, message) = recording.messages([topic])
    check_surface(deserialize_message(message, Surface), name="sheet", stale=False, periodic=False)


def test_all_parts_of_a_recording_are_converted(tmp_path):
    bag = earlier_bag(tmp_path / "walk")
    earlier_bag(tmp_path / "walk_2")
    assert run(bag).count("converted") == 2
    with OpenRecording(bag_parts(bag)) as recording:
        (topic,) = recording.topics(["actuator_state"], with_commands=False)
        assert topic.messages == 2 * len(TIMES)


def test_an_original_that_is_kept_is_never_overwritten(tmp_path):
    bag = earlier_bag(tmp_path / "walk")
    (tmp_path / "walk.old").mkdir()
    with pytest.raises(SoftformError, match=r"walk\.old is in the way"):
        run(bag)
    with Reader(bag) as reader:
        assert any(one.topic == "/lab/pressure_state" for one in reader.connections)


def test_what_is_no_bag_is_not_taken_for_one(tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(SoftformError, match="nor a bag"):
        run(tmp_path / "notes")


def test_a_bag_of_an_unknown_definition_is_left_as_it_is(tmp_path):
    bag = earlier_bag(tmp_path / "walk", FIRST_SURFACE.replace("cols", "columns"))
    before = sorted((bag / name).read_bytes() for name in ("walk.mcap", "metadata.yaml"))
    with pytest.raises(SoftformError, match="cannot be converted: /lab/predicted_surface: .* no attribute 'cols'"):
        run(bag)
    assert sorted((bag / name).read_bytes() for name in ("walk.mcap", "metadata.yaml")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["walk"]
