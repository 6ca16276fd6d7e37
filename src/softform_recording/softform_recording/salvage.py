"""MCAP files that were not closed, or are damaged: what is whole of them goes into a new bag.

An MCAP file is a sequence of records (one byte of type, eight of length, the content) between two magic words
(https://mcap.dev/spec). Records that are complete, and chunks of messages that agree with their checksum, are a valid
file without a summary once the end that every file has is added; readers then go through its records instead.
"""

import fcntl
import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinitionFormat
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.errors import WriterError
from rosbags.rosbag2.storage_mcap import McapReader, decompress

from softform_core.errors import SoftformError
from softform_recording.bag_writer import BagWriter, summary_checksums
from softform_recording.message_definitions import recorded_hash
from softform_recording.parts import files_of, part_folders

MAGIC = b"\x89MCAP0\r\n"
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
_RECORDS = range(_HEADER, _DATA_END + 1)
_KEPT = (_HEADER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK)
# Data end without checksum; footer without summary, summary offsets and checksum.
_ENDING = struct.pack("<BQI", _DATA_END, 4, 0) + struct.pack("<BQQQI", _FOOTER, 20, 0, 0, 0) + MAGIC


def hold_for_writing(file: BinaryIO) -> None:
    """Lock a new MCAP file until it is closed, also by the end of its process."""
    with suppress(OSError):  # a disk that knows no locks
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def check_not_held(file: BinaryIO) -> None:
    """See that no recorder of ours writes an open MCAP file.

    Raises:
        SoftformError: If one does.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SoftformError(
            f"{file.name} is being recorded.", "Stop that recording first: it closes its bag by itself."
        ) from error
    except OSError:
        return  # a disk that knows no locks


def has_end(file: BinaryIO) -> bool:
    """Return whether an open file ends as a closed MCAP file does."""
    size = file.seek(0, 2)
    file.seek(max(0, size - len(MAGIC)))
    return size > 37 and file.read() == MAGIC


def close_mcap(file: Path) -> int:
    """Cut a recorder's own file behind its last whole record that leaves room for an ending, and write the ending.

    Returns:
        Its number of messages.

    Raises:
        SoftformError: If there is no whole record.
    """
    with file.open("r+b", buffering=0) as mcap:
        ends = []
        for kind, _, end, is_whole in _records(mcap):
            if kind == _DATA_END or not is_whole:
                break
            ends.append(end)
        for end in reversed(ends):
            try:
                mcap.truncate(end)
                mcap.seek(end)
                if mcap.write(_ENDING) == len(_ENDING):
                    break
            except OSError:
                continue  # no room even for the ending: give up one more record
        else:
            raise SoftformError(f"{file} holds no whole record.", "There is nothing to save in it.")
    with Reader(file) as reader:
        return int(reader.message_count)


def salvage_bag(bag: Path, output: Path) -> tuple[int, list[str]]:
    """Write what is whole of a recording, all its parts, into one new bag; the recording stays as it is.

    Args:
        bag: MCAP file, or a folder of such files; those in which the recording went on follow it.
        output: Bag folder, which must not exist.

    Returns:
        Number of messages in the new bag, and what had to be left out, in words.

    Raises:
        SoftformError: If there is nothing whole, a file is being recorded, or the bag cannot be written.
    """
    files = [bag] if bag.is_file() else [file for part in part_folders(bag) for file in files_of(part, ".mcap")]
    if not files:
        raise SoftformError(f"{bag} holds no .mcap file.", "Give an .mcap file, or a folder with some.")
    left_out: list[str] = []
    found = count = 0
    try:
        writer = BagWriter(output)
        try:
            with writer:
                for file in files:
                    whole = output / "whole.part"
                    records, damage = _copy_whole(file, whole)
                    written, lost = _append(whole, writer) if records else (0, 0)
                    damage += [f"{lost} messages whose topic or type was in what is damaged"] * bool(lost)
                    left_out += [f"{what} of {file}" for what in damage]
                    found, count = found + records, count + written
                    whole.unlink()
                if not found:
                    raise SoftformError(f"{bag} holds no whole record.", "There is nothing to save in it.")
        except BaseException:
            shutil.rmtree(output, ignore_errors=True)
            raise
    except WriterError as error:
        raise SoftformError(f"{error}", "Choose another --output.") from error
    except OSError as error:
        raise SoftformError(
            f"{error.filename or output}: {error.strerror}.", "Check disk and permissions, or choose another --output."
        ) from error
    except SoftformError:
        raise
    except Exception as error:  # rosbags raises what its parsers raise
        raise SoftformError(
            f"{bag} cannot be salvaged: {str(error).rstrip('.')}.", "Get it again from where it was recorded."
        ) from error
    return count, left_out


def _copy_whole(source: Path, target: Path) -> tuple[int, list[str]]:
    """Copy the records of a file that are whole; how many, and what was left out in words."""
    records, damaged, place, kind = 0, 0, 0, 0
    with source.open("rb") as file, target.open("wb") as whole:
        check_not_held(file)
        has_summary = has_end(file) and len(set(summary_checksums(file)) - {0}) < 2
        whole.write(MAGIC)
        for kind, start, end, is_whole in _records(file):
            place = end
            if kind == _DATA_END and not has_summary:
                break
            damaged += not is_whole
            if is_whole and kind in _KEPT:
                file.seek(start)
                whole.write(file.read(end - start))
                records += 1
        whole.write(_ENDING)
        rest = 0 if kind in (_DATA_END, _FOOTER) else file.seek(0, 2) - place
    return records, [f"{damaged} damaged chunks"] * bool(damaged) + [f"the last {rest} bytes"] * bool(rest)


def _append(file: Path, writer: BagWriter) -> tuple[int, int]:
    """Write the messages of an MCAP file into a bag; how many were written, and how many are of no known topic."""
    reader = McapReader(file)
    reader.open()
    try:
        known = [one for one in reader.connections if one.msgdef.format is not MessageDefinitionFormat.NONE]
        new = {one.id: _connected(writer, one) for one in known}
        count = 0
        for recorded, moment, data in reader.messages_scan(known):
            writer.write(new[recorded.id], moment, data)
            count += 1
        return count, reader.metadata.message_count - count
    finally:
        reader.close()


def _connected(writer: BagWriter, recorded: Connection) -> Connection:
    """Return the connection for messages of a recorded one; several may be alike, in one file and in parts."""
    for one in writer.connections:
        if (one.topic, one.msgtype, one.ext) == (recorded.topic, recorded.msgtype, recorded.ext):
            return one
    assert isinstance(recorded.ext, ConnectionExtRosbag2)
    return writer.add_connection(
        recorded.topic,
        recorded.msgtype,
        msgdef=recorded.msgdef.data,
        rihs01=recorded_hash(recorded) or "unknown",
        serialization_format=recorded.ext.serialization_format,
        offered_qos_profiles=recorded.ext.offered_qos_profiles,
    )


def _records(mcap: BinaryIO) -> Iterator[tuple[int, int, int, bool]]:
    """Yield the kind, begin and end of each complete record, and whether it is whole within."""
    size = mcap.seek(0, 2)
    mcap.seek(0)
    if mcap.read(len(MAGIC)) != MAGIC:
        return
    while len(head := mcap.read(9)) == 9:
        kind, length = struct.unpack("<BQ", head)
        begin = mcap.tell()
        if kind not in _RECORDS or begin + length > size:
            return
        yield kind, begin - 9, begin + length, kind != _CHUNK or _is_whole(mcap.read(length))
        mcap.seek(begin + length)


def _is_whole(chunk: bytes) -> bool:
    """Return whether a chunk agrees with its checksum, if it has one, and holds records from end to end."""
    try:
        _, _, size, checksum, word = struct.unpack_from("<QQQII", chunk)
        (length,) = struct.unpack_from("<Q", chunk, 32 + word)
        records = decompress(chunk[40 + word :], chunk[32 : 32 + word].decode(), size, checksum)
        place = 0 if length == len(chunk) - 40 - word else size + 1
        while place < size:
            kind, length = struct.unpack_from("<BQ", records, place)
            if kind not in (_SCHEMA, _CHANNEL, _MESSAGE):
                return False
            place += 9 + length
    except Exception:  # whatever a decompressor makes of bytes that are none
        return False
    return place == size
