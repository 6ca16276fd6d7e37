"""Makes an MCAP file readable that was not closed: after a crash, a power cut, or a full disk.

An MCAP file is a sequence of records (one byte of type, eight of length, the content) between two magic words
(https://mcap.dev/spec). Cutting it behind its last complete record and adding the end that every file has makes it a
valid one without a summary; readers then go through its records instead.
"""

import struct
from pathlib import Path
from typing import BinaryIO

import click
import yaml
from rosbags.interfaces import ConnectionExtRosbag2
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.metadata import dump_qos_v9

from softform_core.errors import SoftformError

MAGIC = b"\x89MCAP0\r\n"
FOOTER, DATA_END = 0x02, 0x0F
DATA_RECORDS = range(0x01, 0x0E)  # header to metadata index; a data end would begin the ending
# Data end without checksum; footer without summary, summary offsets and checksum.
ENDING = struct.pack("<BQI", DATA_END, 4, 0) + struct.pack("<BQQQI", FOOTER, 20, 0, 0, 0) + MAGIC


def repair_bag(folder: Path) -> int:
    """Make the bag folder of an interrupted recording readable and return its number of messages.

    Every chunk of messages that was completely written is kept. A bag that was closed in order is left as it is.

    Raises:
        SoftformError: If the folder does not hold one MCAP file, or one without a complete record.
    """
    files = sorted(folder.glob("*.mcap"))
    if len(files) != 1:
        raise SoftformError(f"{folder} holds {len(files)} .mcap files.", "Give the folder of one recording.")
    if not (folder / "metadata.yaml").is_file():
        close_mcap(files[0])
        write_metadata(files[0])
    with Reader(folder) as reader:
        return int(reader.message_count)


def close_mcap(file: Path) -> None:
    """Cut `file` behind its last complete record that leaves room for an ending on the disk, and write the ending.

    Raises:
        SoftformError: If there is no complete record.
    """
    with file.open("r+b", buffering=0) as mcap:
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
        if kind not in DATA_RECORDS or end > size:
            break
        ends.append(mcap.seek(end))
    return ends


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
    (file.parent / "metadata.yaml").write_text(text)


@click.command("repair-bag")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def repair_bag_command(folder: Path) -> None:
    """Make the recording in FOLDER readable that was cut off by a crash or a power cut.

    Every completely written chunk of messages is kept; a recording that was closed in order is left as it is.
    """
    try:
        click.echo(f"{folder} holds {repair_bag(folder)} messages.")
    except SoftformError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    repair_bag_command()
