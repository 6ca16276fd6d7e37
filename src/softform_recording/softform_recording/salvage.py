"""Makes an MCAP file readable that was not closed: after a crash, a power cut, or a full disk.

An MCAP file is a sequence of records (one byte of type, eight of length, the content) between two magic words
(https://mcap.dev/spec). Cutting it behind its last complete record and adding the end that every file has makes it a
valid one without a summary; readers then go through its records instead.
"""

import fcntl
import struct
from pathlib import Path
from typing import BinaryIO

import yaml
from rosbags.interfaces import ConnectionExtRosbag2
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.errors import ReaderError
from rosbags.rosbag2.metadata import dump_qos_v9

from softform_core.errors import SoftformError
from softform_core.files import write_atomically

MAGIC = b"\x89MCAP0\r\n"
FOOTER, DATA_END = 0x02, 0x0F
CHUNK = 0x06
IN_CHUNKS = (0x03, 0x04, 0x05)  # schema, channel, message
DATA_RECORDS = range(0x01, 0x0E)  # header to metadata index; a data end would begin the ending
# Data end without checksum; footer without summary, summary offsets and checksum.
ENDING = struct.pack("<BQI", DATA_END, 4, 0) + struct.pack("<BQQQI", FOOTER, 20, 0, 0, 0) + MAGIC


def hold_for_writing(file: BinaryIO) -> None:
    """Lock an open MCAP file until it is closed, also by the end of its process.

    Raises:
        SoftformError: If another process holds it: it is being recorded.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SoftformError(
            f"{file.name} is being recorded.", "Stop that recording first: it closes its bag by itself."
        ) from error


def is_closed(folder: Path) -> bool:
    """Whether the bag was closed in order, or salvaged."""
    metadata = folder / "metadata.yaml"
    return metadata.is_file() and metadata.stat().st_size > 0  # an empty one was begun on a full disk


def salvage_bag(folder: Path) -> int:
    """Make the bag folder of an interrupted recording readable and return its number of messages.

    Every chunk of messages that was completely written is kept. A bag that was closed in order is left as it is.

    Raises:
        SoftformError: If the folder does not hold one MCAP file, one without a complete record, or one that is being
            recorded.
    """
    files = sorted(folder.glob("*.mcap"))
    if len(files) != 1:
        raise SoftformError(f"{folder} holds {len(files)} .mcap files.", "Give the folder of one recording.")
    if not is_closed(folder):
        close_mcap(files[0])
        write_metadata(files[0])
        (folder / "reserve").unlink(missing_ok=True)  # what the recorder held back of the disk
    try:
        with Reader(folder) as reader:
            return int(reader.message_count)
    except ReaderError as error:
        raise SoftformError(
            f"The bag {folder} cannot be read: {error}", "Remove its metadata.yaml, then salvage it again."
        ) from error


def close_mcap(file: Path) -> None:
    """Cut `file` behind its last complete record that leaves room for an ending on the disk, and write the ending.

    Raises:
        SoftformError: If there is no complete record, or the file is being recorded.
    """
    with file.open("r+b", buffering=0) as mcap:
        hold_for_writing(mcap)
        for end in reversed(_record_ends(mcap)):
            try:
                mcap.truncate(end)
                mcap.seek(end)
                if mcap.write(ENDING) == len(ENDING):
                    return
            except OSError:
                continue  # no room even for the ending: give up one more record
    raise SoftformError(f"{file} holds no complete record.", "There is nothing to save in it.")


def _record_ends(mcap: BinaryIO) -> list[int]:
    """Return the offset behind every complete record before the ending."""
    size = mcap.seek(0, 2)
    mcap.seek(0)
    ends: list[int] = []
    if mcap.read(len(MAGIC)) != MAGIC:
        return ends
    while len(head := mcap.read(9)) == 9:
        kind, length = struct.unpack("<BQ", head)
        end = mcap.tell() + length
        if kind not in DATA_RECORDS or end > size or (kind == CHUNK and not _is_whole(mcap.read(length))):
            break
        ends.append(mcap.seek(end))
    return ends


def _is_whole(chunk: bytes) -> bool:
    """Whether an uncompressed chunk holds records from end to end: a power cut leaves zeros where they should be."""
    if len(chunk) < 40 or chunk[28:32] != bytes(4):
        return len(chunk) >= 40  # compressed by another recorder: its own reader checks it
    place = 40  # behind times, size, checksum, compression and length
    while place + 9 <= len(chunk):
        kind, length = struct.unpack_from("<BQ", chunk, place)
        if kind not in IN_CHUNKS:
            return False
        place += 9 + length
    return place == len(chunk)


def write_metadata(file: Path) -> None:
    """Write the `metadata.yaml` that makes a folder with one MCAP file a rosbag2 bag."""
    with Reader(file) as reader:
        span = {
            "starting_time": {"nanoseconds_since_epoch": reader.start_time},
            "duration": {"nanoseconds": max(0, reader.duration - 1)},
            "message_count": reader.message_count,
        }
        topics = [
            {
                "topic_metadata": {
                    "name": connection.topic,
                    "type": connection.msgtype,
                    "serialization_format": connection.ext.serialization_format,
                    "offered_qos_profiles": dump_qos_v9(connection.ext.offered_qos_profiles),
                    "type_description_hash": connection.digest,
                },
                "message_count": connection.msgcount,
            }
            for connection in reader.connections
            if isinstance(connection.ext, ConnectionExtRosbag2)
        ]
    information = {
        "version": 9,
        "storage_identifier": "mcap",
        "relative_file_paths": [file.name],
        **span,
        "topics_with_message_count": topics,
        "compression_format": "",
        "compression_mode": "",
        "files": [{"path": file.name, **span}],
        "custom_data": None,
        "ros_distro": "rosbags",
    }
    text = yaml.safe_dump({"rosbag2_bagfile_information": information}, sort_keys=False)
    write_atomically(file.parent / "metadata.yaml", text.encode())
