"""Bags (rosbag2, MCAP) whose chunks of messages and whose summary have checksums, which `rosbags` leaves out."""

import struct
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter

_CHUNK_CHECKSUM = 9 + 24
"""Offset of the checksum of a chunk's messages from the chunk's beginning, bytes."""

_SUMMARY_CHECKSUM = 12
"""Distance of the summary's checksum, the last item that it covers, from the end of the file, bytes."""


class _CheckedMcapWriter(McapWriter):
    def close_chunk(self) -> None:
        checksum = crc32(self.chunk.bio.getbuffer())
        begin = self.bio.tell()
        super().close_chunk()
        end = self.bio.tell()
        self.bio.seek(begin + _CHUNK_CHECKSUM)
        self.bio.write(struct.pack("<I", checksum))
        self.bio.seek(end)

    def close(self, version: int, metadata: str) -> None:
        super().close(version, metadata)
        with self.path.open("r+b") as file:
            _, checksum = summary_checksums(file)
            file.seek(-_SUMMARY_CHECKSUM, 2)
            file.write(struct.pack("<I", checksum))


class BagWriter(Writer):
    """A new bag of one MCAP file; the folder must not exist."""

    STORAGE_PLUGINS = {StoragePlugin.MCAP: _CheckedMcapWriter}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, version=9, storage_plugin=StoragePlugin.MCAP)


def summary_checksums(file: BinaryIO) -> tuple[int, int]:
    """Return the checksum that a closed MCAP file tells of its summary, 0 if it tells none, and the one that it has."""
    size = file.seek(-28, 2) + 28
    start, _, told = struct.unpack("<QQI", file.read(20))
    file.seek(min(start, size))
    return told, crc32(file.read(max(0, size - _SUMMARY_CHECKSUM - start))) if start else told
