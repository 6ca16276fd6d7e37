"""Messages and requests of others, as a fuzzer has them, at what unpacks and checks them; without ROS's discovery.

The first byte of an input chooses the type. The second says what follows: the message as it comes from the network, or
numbers by which the fields of a valid one are damaged; most damage to the bytes is found by their reader already.
"""

import random
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, TransformStamped
from rclpy._rclpy_pybind11 import RCLError, RMWError
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from softform_actuation.clock import Clock
from softform_actuation.commands import check_age, check_command
from softform_actuation.lease import Asked, Grant, LeasedCommands
from softform_client import follow_messages, plan_messages, reach_messages
from softform_client.actuator_values import values_from_message
from softform_client.driver_watch import DriverWatch
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_target
from softform_interfaces import action, msg, srv
from softform_rig.faults import parse_fault
from softform_ros.asked import age_of, require_recent
from softform_ros.command_lease import KnownLease
from softform_ros.conversions import (
    NORMAL_FIELDS,
    cloud_from_points,
    packed_vertices,
    points_from_cloud,
    positions_from_markers,
    unpacked_vertices,
    values_from_cloud,
)
from softform_ros.frames import place_from_message
from softform_ros.histories import history_from_message
from softform_ros.stack_state import state_in_words
from softform_ros.transform_tree import TransformTree

__all__ = ["MESSAGES", "REQUESTS", "SEEDS", "damaged", "fuzz_messages", "fuzz_requests"]

_ROBOT = load_robot("membrane")
_FRAME, _MAX_AGE = _ROBOT.base_frame, 60.0
_MOST_KB = 400_000
_LEASES = LeasedCommands(Clock(), 1.0, _ROBOT.command_fingerprint())
_TREE = TransformTree()


def fuzz_messages(data: bytes) -> None:
    """Give a message to what takes it.

    Raises:
        AssertionError: If something inconsistent is accepted, or takes much memory.
    """
    _give(MESSAGES, data)


def fuzz_requests(data: bytes) -> None:
    """Give a request or a goal to what checks it.

    Raises:
        AssertionError: If something inconsistent is accepted, or takes much memory.
    """
    _give(REQUESTS, data)


def _give(kinds: "Takers", data: bytes) -> None:
    seed, take = kinds[data[0] % len(kinds) if data else 0]
    try:
        if data[1:2] > b"\0":
            message = damaged(seed, random.Random(data[2:]))
        else:
            message = deserialize_message(data[2:], type(seed))
    except (RCLError, RMWError):
        return
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(SoftformError):
        take(message)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MOST_KB, "much memory is taken"


def _take_command(message: msg.ActuatorCommand) -> None:
    age = age_of(message.header.stamp, time.time())
    values = check_command(_ROBOT, message.name, message.unit, message.value)
    assert (values >= _ROBOT.actuator_min).all() and (values <= _ROBOT.actuator_max).all()
    check_age(age, 1.0)
    _LEASES.put(message.source, Grant(message.lease, message.key), values)
    raise AssertionError("a command without a lease was taken")


def _take_actuator_state(message: msg.ActuatorState) -> None:
    watch = DriverWatch(_ROBOT, 1.0)
    watch.note_values(message.name, message.value, message.status, message.header.stamp.sec)
    assert watch.values is None or watch.values.shape == (len(_ROBOT.actuators),)


def _take_driver_state(message: msg.DriverState) -> None:
    KnownLease().note(message.holder, message.lease)
    watch = DriverWatch(_ROBOT, 1.0, source="me")
    watch.note_state(message.state, message.reason, message.holder)
    watch.check_ready()


def _take_cloud(message: PointCloud2) -> None:
    points = points_from_cloud(message)
    assert points.shape == (message.width * message.height, 3)
    if {field.name for field in message.fields}.issuperset(NORMAL_FIELDS):
        values_from_cloud(message, NORMAL_FIELDS)
    assert np.isfinite(check_target(points, _ROBOT)).all()


def _take_history(message: msg.ActuationHistory) -> None:
    history = history_from_message(message, _ROBOT)
    assert history.sequence.shape[1] == _ROBOT.degrees_of_freedom and np.isfinite(history.sequence).all()


def _take_mesh(message: msg.TargetMesh) -> None:
    points = unpacked_vertices(message.vertices)
    faces = reach_messages.faces_from_message(message.triangles)
    shape = Shape.from_mesh(check_target(points, _ROBOT), faces)
    assert shape.faces is not None and shape.faces.max() < len(shape.points)


def _take_markers(message: msg.MarkerFrame) -> None:
    positions = positions_from_markers(message)
    gone = np.isnan(positions).any(axis=1)
    assert len(positions) == len(message.name) and np.isfinite(positions[~gone]).all()


def _take_transforms(message: TFMessage) -> None:
    for one in message.transforms:
        _TREE.put(one.header.frame_id, one.child_frame_id, one.header.stamp.sec, place_from_message(one))
        place = _TREE.lookup(one.header.frame_id, one.child_frame_id, one.header.stamp.sec)
        assert np.isfinite(place.rotation).all()


def _take_bringup_state(message: msg.BringupState) -> None:
    assert state_in_words(message).isprintable()


def _take_prediction(request: srv.PredictShape.Request) -> None:
    values = values_from_message(request.actuators, _ROBOT)
    assert np.isfinite(_ROBOT.check_commands(np.asarray(values, dtype=np.float64))).all()


def _take_lease(request: srv.Lease.Request) -> None:
    asked = Asked(age_of(request.asked.stamp, time.time()), request.asked.epoch)
    if request.request == srv.Lease.Request.RELEASE:
        _LEASES.require(request.source, Grant(request.lease, request.key))
    _LEASES.acquire(request.source, request.client, asked, request.fingerprint)
    raise AssertionError("a lease of another epoch was given")


def _take_reset(request: srv.Reset.Request) -> None:
    require_recent(age_of(request.asked.stamp, time.time()), request.asked.epoch, "The reset")


def _take_reach(goal: action.ReachShape.Goal) -> None:
    checked = reach_messages.goal_from_message(goal, _ROBOT, _FRAME, time.time(), _MAX_AGE)
    assert np.isfinite([checked.tolerance, checked.max_time, checked.preference]).all()
    assert checked.target is None or np.isfinite(checked.target.points).all()


def _take_path(goal: action.FollowWaypoints.Goal) -> None:
    checked = follow_messages.goal_from_message(goal, _ROBOT, _FRAME, time.time(), _MAX_AGE)
    assert checked.times is None or (np.isfinite(checked.times).all() and (np.diff(checked.times) > 0.0).all())


def _take_plan(goal: action.PlanToShape.Goal) -> None:
    checked = plan_messages.goal_from_message(goal, _ROBOT, _FRAME, time.time(), _MAX_AGE)
    assert np.isfinite([checked.clearance, checked.max_time]).all()


def _take_capture(goal: action.CaptureShape.Goal) -> None:
    reach_messages.target_from_message(goal, _ROBOT, _FRAME, time.time(), _MAX_AGE)


_EDGES: dict[type, tuple[Any, ...]] = {
    bool: (False, True),
    float: (0.0, -1.0, 1e-300, 1e9, 1e308, float("inf"), float("-inf"), float("nan")),
    str: ("", "x" * 5000, "c1", "\x1b[2J\x07", "\u202egpj", "\N{REPLACEMENT CHARACTER}" * 3, "../../etc/passwd", "/"),
}
_INTEGERS = (0, 1, -1, 3, 127, 255, 2**31 - 1, -(2**31), 2**32 - 1, 2**63, 2**64 - 1)
_MOST_ELEMENTS, _NESTED_SHARE = 2000, 0.7


def damaged(seed: Any, choose: random.Random) -> Any:
    """A copy of a message, some fields of which hold what a careless or hostile program may put there."""
    message = deserialize_message(serialize_message(seed), type(seed))
    for _ in range(choose.randint(1, 4)):
        owner = message
        while True:
            name, kind = choose.choice([*owner.get_fields_and_field_types().items()])
            value = getattr(owner, name)
            if kind.startswith("sequence") and "/" in kind and value and choose.random() < _NESTED_SHARE:
                value = choose.choice(value)
            if not hasattr(value, "get_fields_and_field_types"):
                break
            owner = value
        setattr(owner, name, _edge(value, kind, choose))
    return deserialize_message(serialize_message(message), type(seed))


def _edge(value: Any, kind: str, choose: random.Random) -> Any:
    """Another value for a field of a type such as `uint32`, `string`, `double[36]` or `sequence<boolean>`."""
    if type(value) in _EDGES:
        return choose.choice(_EDGES[type(value)])
    if isinstance(value, int):
        bits = int(kind.strip("uint"))
        low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
        return choose.choice([each for each in _INTEGERS if low <= each < low + 2**bits])
    if isinstance(value, np.ndarray):  # of a fixed length
        value[choose.randrange(len(value))] = choose.choice(
            [0, 1, 127, 2**31 - 1] if value.dtype.kind in "iu" else [np.nan]
        )
        return value
    elements = value[:]
    if len(elements) and type(elements[0]) in _EDGES and choose.random() < _NESTED_SHARE:
        elements[choose.randrange(len(elements))] = choose.choice(_EDGES[type(elements[0])])
        return elements
    return (elements * choose.choice((0, 1, 2, 300)))[: choose.choice((len(elements) // 2, _MOST_ELEMENTS))]


_NOW = Time(sec=1_700_000_000)
_HEADER = Header(frame_id=_FRAME)
_NAMES, _UNITS = list(_ROBOT.actuators), [_ROBOT.unit] * len(_ROBOT.actuators)
_MIDDLE = [float(value) for value in (_ROBOT.actuator_min + _ROBOT.actuator_max) / 2.0]
_VALUES = msg.ActuatorValues(name=_NAMES, value=_MIDDLE, unit=_ROBOT.unit)
_ASKED = msg.Asked(stamp=_NOW, epoch=7)
_GRID = np.stack([*np.meshgrid(*[np.linspace(-0.15, 0.15, 5)] * 2), np.full((5, 5), 0.01)], axis=-1).reshape(-1, 3)
_CLOUD = cloud_from_points(_GRID, _FRAME, Time(), dict.fromkeys(NORMAL_FIELDS, _GRID[:, 2]))
_TRIANGLES = [vertex for a in range(0, 18) if a % 5 < 4 for vertex in (a, a + 1, a + 6)]
_POINTS = [Point(x=float(x), y=float(y), z=float(z)) for x, y, z in _GRID]
_FEATURES = msg.TargetPoints(header=_HEADER, u=[0.5], v=[0.5], position=_POINTS[:1], weight=[1.0])
_TRANSFORM = TransformStamped(header=Header(frame_id="world", stamp=_NOW), child_frame_id="camera")

Takers: TypeAlias = tuple[tuple[Any, Callable[[Any], object]], ...]

MESSAGES: Takers = (
    (msg.ActuatorCommand(header=_HEADER, source="me", name=_NAMES, unit=_UNITS, value=_MIDDLE), _take_command),
    (msg.ActuatorState(name=_NAMES, unit=_UNITS, value=_MIDDLE, status=[1] * len(_NAMES)), _take_actuator_state),
    (msg.ActuationHistory(name=_ROBOT.actuation_names, turns=[1] * 9, stamp=[1.0] * 9, value=_MIDDLE), _take_history),
    (msg.DriverState(state=1, reason="running", holder="me", lease=2**32 + 1, epoch=7), _take_driver_state),
    (_CLOUD, _take_cloud),
    (msg.TargetMesh(header=_HEADER, vertices=packed_vertices(_GRID), triangles=_TRIANGLES), _take_mesh),
    (_FEATURES, lambda message: reach_messages.features_from_message(message, _ROBOT)),
    (msg.MarkerFrame(name=["a", "b"], position=_POINTS[:2], visible=[True, False]), _take_markers),
    (TFMessage(transforms=[_TRANSFORM]), _take_transforms),
    (msg.BringupState(state=2, reason="scanner does not answer"), _take_bringup_state),
)
"""A valid message of each type, and what takes those that come."""

REQUESTS: Takers = (
    (srv.PredictShape.Request(actuators=_VALUES), _take_prediction),
    (srv.Lease.Request(source="me", client=3, asked=_ASKED, fingerprint=_LEASES.fingerprint), _take_lease),
    (srv.Reset.Request(asked=_ASKED), _take_reset),
    (srv.InjectFault.Request(fault="stall+1"), lambda request: parse_fault(request.fault)),
    (action.ReachShape.Goal(target=_CLOUD, triangles=_TRIANGLES, features=_FEATURES, asked=_ASKED), _take_reach),
    (action.FollowWaypoints.Goal(header=_HEADER, points=_POINTS[:3], u=0.5, v=0.5, times=[1.0, 2.0, 3.0]), _take_path),
    (action.FollowWaypoints.Goal(kind=1, header=_HEADER, shapes=[_CLOUD] * 2, times=[1.0, 2.0]), _take_path),
    (action.FollowWaypoints.Goal(kind=2, actuators=_VALUES, times=[1.0]), _take_path),
    (action.PlanToShape.Goal(goal=_VALUES, start=_VALUES, obstacles=_CLOUD, clearance=0.01), _take_plan),
    (action.CaptureShape.Goal(target=_CLOUD, triangles=_TRIANGLES), _take_capture),
)
"""The same of requests and goals."""


def _seeds(kinds: Takers) -> tuple[bytes, ...]:
    whole = [bytes([number, 0]) + serialize_message(seed) for number, (seed, _) in enumerate(kinds)]
    return (*whole, *(bytes([number, 1, damage]) for number in range(len(kinds)) for damage in range(8)))


SEEDS = {"fuzz_messages": _seeds(MESSAGES), "fuzz_requests": _seeds(REQUESTS)}
"""Valid inputs by the name of the function, and damaged ones, from which mutation starts."""
