"""Settled scans and their actuations out of a bag of any topics, as a table that `importing.frames` takes."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection
from sensor_msgs.msg import PointCloud2
from tf2_msgs.msg import TFMessage

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.shapes.read import Unit
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import MIN_POINTS
from softform_core.shapes.validate import measured as measured_points
from softform_core.shapes.write import write_ply
from softform_core.units import MM_PER_M
from softform_recording.bag_reading import bag_parts, reading, whole_messages
from softform_recording.message_definitions import standard_definitions
from softform_ros.conversions import points_from_cloud, seconds_from_stamp
from softform_ros.frames import place_from_message
from softform_ros.transform_tree import TransformTree

TABLE = "captures.csv"
_CLOUD = "sensor_msgs/msg/PointCloud2"
_STEP = re.compile(r"\.?([A-Za-z]\w*)|\[(\d+)\]")


@dataclass(frozen=True)
class TopicField:
    """Numbers in the messages of a topic, to which names of fields and indices of elements lead."""

    topic: str
    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: str) -> "TopicField":
        """Read `TOPIC:FIELD`, such as `/pressures:data`, `/pressures:data[2]` or `/valves:channels[0].pressure`.

        Raises:
            SoftformError: If it is none.
        """
        topic, _, field = text.strip().partition(":")
        found = list(_STEP.finditer(field))
        if not topic.startswith("/") or not field or "".join(match[0] for match in found) != field:
            raise SoftformError(
                f"'{text}' names no field of a topic.", "Write TOPIC:FIELD, such as /pressures:data or /valve:value[0]."
            )
        return cls(topic, tuple(match[1] if match[1] else int(match[2]) for match in found))

    def values(self, message: Any) -> NDArray[np.float64]:
        """Return the numbers in a message, (k,).

        Raises:
            SoftformError: If there are none at this place.
        """
        found = message
        try:
            for step in self.steps:
                found = getattr(found, step) if isinstance(step, str) else found[step]
            return np.atleast_1d(np.asarray(found, dtype=np.float64)).ravel()
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            fields = ", ".join(name for name in vars(message) if not name.startswith("_"))
            raise SoftformError(
                f"Messages of {self.topic} have no numbers at this field: {error}.", f"Their fields are {fields}."
            ) from error


class _Heard:
    """Newest numbers of some fields, side by side."""

    def __init__(self, fields: Sequence[TopicField]) -> None:
        self.fields = fields
        self._parts: list[NDArray[np.float64] | None] = [None] * len(fields)

    def take(self, topic: str, message: Any) -> None:
        for number, field in enumerate(self.fields):
            if field.topic == topic:
                self._parts[number] = field.values(message)

    @property
    def values(self) -> NDArray[np.float64] | None:
        """All numbers; None until each has been heard, and without fields."""
        known = [part for part in self._parts if part is not None]
        return np.concatenate(known) if known and len(known) == len(self.fields) else None


def extract_captures(
    bag: Path,
    scans: str,
    actuation: Sequence[TopicField],
    names: Sequence[str],
    output: Path,
    *,
    measured: Sequence[TopicField] = (),
    frame: str | None = None,
    settled: float = 2.0,
    unit: Unit = "m",
) -> tuple[Path, str]:
    """Write a folder of PLY files (m) and a table of them: the last scan under each actuation that stood still.

    Points that were not measured (`shapes.validate.measured`) are left out, and scans of fewer than four points, as
    devices send that see nothing, are passed over.

    Args:
        bag: Folder of a ROS 2 bag (MCAP or SQLite), or the .mcap file in it.
        scans: Topic of point clouds.
        actuation: Fields of the commanded degrees of freedom, side by side in their order.
        names: Names of the degrees of freedom: columns of the table. Measured ones have `measured_` before them.
        output: Folder to write; an earlier one of the same kind is replaced.
        measured: Fields of the measured degrees of freedom.
        frame: Frame into which the bag's transforms bring the scans; None: they are left in their own.
        settled: s for which the commanded actuation must have stood still when a scan comes. Times are those at which
            messages were recorded, which are of one clock.
        unit: Unit of the scans; transforms are in m.

    Returns:
        The table, and what was made of the scans in words.

    Raises:
        SoftformError: If the bag cannot be read, has no such topics, fields, transforms or settled scans, or the
            folder holds something else or cannot be written.
    """
    if output.exists() and not (output / TABLE).is_file():
        raise SoftformError(f"{output} is in the way.", "Move it, or give another --output.")
    partial = output.with_name(f".{output.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        rows = [",".join(["stamp", *names, *(f"measured_{name}" for name in names if measured), "scan"])]
        seen = _Seen()
        found = _settled_scans(bag, scans, actuation, measured, names, frame, settled, unit, seen)
        for number, (stamp, points, values) in enumerate(found):
            file = f"scan_{number:04d}.ply"
            write_ply(partial / file, Shape.from_cloud(points))
            rows.append(f"{stamp:.6f},{','.join(f'{value:.9g}' for value in values)},{file}")
        if len(rows) == 1:
            raise SoftformError(
                f"None of {seen.scans} scans on {scans} in {bag} came once the actuation had stood still for "
                f"{settled:g} s; it changed {seen.changes} times.",
                "Hold each actuation longer, give a smaller --settled, or name commanded values: measured ones change.",
            )
        write_atomically(partial / TABLE, "\n".join([*rows, ""]).encode())
        shutil.rmtree(output, ignore_errors=True)
        partial.rename(output)
    except OSError as error:
        raise SoftformError(
            f"{output} cannot be written: {error.strerror}.", "Check the folder and free space."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    told = f"{len(rows) - 1} of {seen.scans} scans taken, the last one under each actuation that stood still"
    return output / TABLE, f"{output}: {told}; {seen.points} points that were not measured left out."


@dataclass
class _Seen:
    """Counts of scans, of changes of the actuation, and of points of settled scans without a measurement."""

    scans: int = 0
    changes: int = 0
    points: int = 0


def _settled_scans(
    bag: Path,
    scans: str,
    actuation: Sequence[TopicField],
    measured: Sequence[TopicField],
    names: Sequence[str],
    frame: str | None,
    settled: float,
    unit: Unit,
    seen: _Seen,
) -> Iterator[tuple[float, NDArray[np.float64], NDArray[np.float64]]]:
    """Return each actuation's last settled scan: stamp, points (N, 3) m, commanded and measured values."""
    commands, sensors = _Heard(actuation), _Heard(measured)
    tree = TransformTree()
    newest: tuple[float, NDArray[np.float64], NDArray[np.float64]] | None = None
    held: NDArray[np.float64] | None = None
    since = 0.0
    wanted = [scans, *(field.topic for field in (*actuation, *measured))]
    for topic, moment, message in _messages(bag, wanted, tree, with_transforms=frame is not None):
        if isinstance(message, PointCloud2):
            seen.scans += 1
            reached = sensors.values
            if held is not None and moment - since >= settled and (reached is not None or not measured):
                points = _points(message, unit, frame, tree)
                seen.points += message.height * message.width - len(points)
                if len(points) >= MIN_POINTS:
                    newest = moment, points, held if reached is None else np.concatenate([held, reached])
            continue
        commands.take(topic, message)
        sensors.take(topic, message)
        _check_count(sensors, names)
        if (values := _check_count(commands, names)) is not None and (held is None or not np.array_equal(values, held)):
            if newest is not None:
                yield newest
            newest, held, since = None, values, moment
            seen.changes += 1
    if newest is not None:
        yield newest


def _check_count(heard: _Heard, names: Sequence[str]) -> NDArray[np.float64] | None:
    values = heard.values
    if values is not None and len(values) != len(names):
        topics = ", ".join(field.topic for field in heard.fields)
        raise SoftformError(
            f"{topics} give {len(values)} numbers; the robot has {len(names)} degrees of freedom: {', '.join(names)}.",
            "Name fields or elements of them, such as /pressures:data[0],/pressures:data[1].",
        )
    return values


def _points(cloud: PointCloud2, unit: Unit, frame: str | None, tree: TransformTree) -> NDArray[np.float64]:
    """Return points of a cloud that were measured, (N, 3) m, in a frame."""
    points = points_from_cloud(cloud)
    points = points[measured_points(points)] / (MM_PER_M if unit == "mm" else 1.0)
    if frame is None or frame == cloud.header.frame_id:
        return points
    return tree.lookup(frame, cloud.header.frame_id, seconds_from_stamp(cloud.header.stamp)).apply(points)


def _messages(
    bag: Path, wanted: Sequence[str], tree: TransformTree, *, with_transforms: bool
) -> Iterator[tuple[str, float, Any]]:
    """Yield the topic, time of recording (s) and message; transforms go into the tree."""
    for part in bag_parts(bag):
        with ExitStack() as stack:
            with reading(part):
                reader = stack.enter_context(AnyReader([part], default_typestore=standard_definitions()))
            moving = [one for one in reader.connections if with_transforms and one.topic == "/tf"]
            static = [one for one in reader.connections if with_transforms and one.topic == "/tf_static"]
            for _, _, data in whole_messages(part, reader, static):
                _note(tree, data, is_static=True)
            chosen = [*_named(reader.connections, wanted), *moving]
            for connection, moment, data in whole_messages(part, reader, chosen):
                with reading(part):
                    if connection.topic == "/tf":
                        _note(tree, data, is_static=False)
                        continue
                    message = (
                        deserialize_message(data, PointCloud2)
                        if connection.msgtype == _CLOUD
                        else reader.deserialize(data, connection.msgtype)
                    )
                yield connection.topic, moment * 1e-9, message


def _named(connections: Sequence[Connection], wanted: Sequence[str]) -> list[Connection]:
    known = {connection.topic: connection.msgtype for connection in connections}
    for topic in wanted:
        if topic not in known:
            raise SoftformError(f"The bag has no topic {topic}.", f"It has {', '.join(sorted(known)) or 'none'}.")
    if known[wanted[0]] != _CLOUD:
        raise SoftformError(f"{wanted[0]} is of {known[wanted[0]]}, not {_CLOUD}.", "Name the topic of point clouds.")
    return [connection for connection in connections if connection.topic in wanted]


def _note(tree: TransformTree, data: bytes, *, is_static: bool) -> None:
    for one in deserialize_message(data, TFMessage).transforms:
        stamp = None if is_static else seconds_from_stamp(one.header.stamp)
        with suppress(SoftformError):  # one that makes no sense is missed only where it is asked for
            tree.put(one.header.frame_id, one.child_frame_id, stamp, place_from_message(one))
