"""Conversion of bags that earlier versions recorded."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from rosbags.interfaces import Connection, ConnectionExtRosbag2
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.rosbag2.errors import ReaderError, WriterError
from rosbags.serde import SerdeError
from rosbags.typesys import TypesysError, get_types_from_msg
from rosbags.typesys.store import Typestore

from softform_core.errors import SoftformError
from softform_recording.earlier_messages import Conversion, conversion_of
from softform_recording.message_definitions import ensure_defined, is_of_todays_form, standard_definitions
from softform_recording.replayed_topics import bag_parts

Rewrite = Callable[[bytes], bytes]
"""From the CDR bytes of a recorded message to those that are written."""


def convert_bag(path: Path) -> list[str] | None:
    """Bring a recording into today's types of messages; the original is kept beside it as `NAME.old`.

    Earlier messages are read by the definitions that the bag itself holds. Topics of other types are copied byte for
    byte; times and quality of service stay. A recording that went on in `NAME_2`, `NAME_3`, … is converted to its end.

    Returns:
        What was done, in lines for people, empty if nothing had to be; None if `path` is no MCAP bag.

    Raises:
        SoftformError: If a bag is damaged, is being recorded, or cannot be written.
    """
    folder = path.parent if path.suffix == ".mcap" else path
    if not any(folder.glob("*.mcap")):
        return None
    return [line for part in bag_parts(folder) for line in _convert_part(part)]


def _convert_part(part: Path) -> list[str]:
    kept = part.with_name(f"{part.name}.old")
    work = part.with_name(f".{part.name}.part")
    try:
        with Reader(part) as reader:
            conversions = {one.id: found for one in reader.connections if (found := _conversion(one)) is not None}
            if not conversions:
                return []
            if kept.exists():
                raise SoftformError(f"{kept} is in the way.", "Move it, or remove it.")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                _copy(reader, work / part.name, conversions)  # the file in a bag bears the name of its folder
                part.rename(kept)
                (work / part.name).rename(part)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise SoftformError(f"{part} cannot be converted: {error}.", "Check the folder and free space.") from error
    except (ReaderError, WriterError, SerdeError, TypesysError, struct.error, ValueError) as error:
        raise SoftformError(
            f"{part} cannot be converted: {error}.", "Replay it with the version of Softform that recorded it."
        ) from error
    topics = ", ".join(sorted(conversion.topic for conversion in conversions.values()))
    return [f"{part}: {topics} converted; the original is {kept.name}"]


def _conversion(recorded: Connection) -> Conversion | None:
    conversion = conversion_of(recorded.topic, recorded.msgtype)
    return None if conversion is None or is_of_todays_form(recorded.msgtype, recorded.digest) else conversion


def _copy(reader: Reader, folder: Path, conversions: dict[int, Conversion]) -> None:
    today = standard_definitions()
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for key, value in (reader.storage.metadata.custom or {}).items():
            writer.set_custom_data(key, value)
        written: dict[int, tuple[Connection, Rewrite]] = {}
        for recorded in reader.connections:
            assert isinstance(recorded.ext, ConnectionExtRosbag2)
            profiles = recorded.ext.offered_qos_profiles
            conversion = conversions.get(recorded.id)
            if conversion is None:
                connection = writer.add_connection(
                    recorded.topic,
                    recorded.msgtype,
                    msgdef=recorded.msgdef.data,
                    rihs01=recorded.digest,
                    offered_qos_profiles=profiles,
                )
                written[recorded.id] = connection, bytes
            else:
                ensure_defined(today, conversion.message_type)
                connection = writer.add_connection(
                    conversion.topic, conversion.message_type, typestore=today, offered_qos_profiles=profiles
                )
                written[recorded.id] = connection, _rewrite(recorded, conversion, today)
        for recorded, moment, message in reader.messages():
            connection, rewrite = written[recorded.id]
            writer.write(connection, moment, rewrite(message))


def _rewrite(recorded: Connection, conversion: Conversion, today: Typestore) -> Rewrite:
    earlier = standard_definitions()
    definitions = get_types_from_msg(recorded.msgdef.data, recorded.msgtype)
    earlier.register({name: fields for name, fields in definitions.items() if name not in earlier.fielddefs})

    def rewrite(message: bytes) -> bytes:
        try:
            converted = conversion.convert(earlier.deserialize_cdr(message, recorded.msgtype), today.types)
        except AttributeError as error:  # of neither an earlier nor this version
            raise ValueError(f"{recorded.topic}: {error}") from error
        return bytes(today.serialize_cdr(converted, conversion.message_type))

    return rewrite
