"""Writes serialised ROS messages into a rosbag2 folder (MCAP) that survives a full disk."""

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2.storage_mcap import McapWriter

from softform_core.errors import SoftformError
from softform_recording.bag_writer import BagWriter
from softform_recording.message_definitions import ensure_defined, standard_definitions
from softform_recording.parts import part_folder, reject_name_of_a_part
from softform_recording.salvage import close_mcap, hold_for_writing

RESERVE = 256 * 1024  # bytes held back, so that a bag on a full disk can still be closed


class RecordingStoppedError(SoftformError):
    """The recording ended early; what was written before is readable."""


class BagRecorder:
    """One recording, in one bag folder at a time.

    `flush` brings everything written to the disk: a crash or a power cut loses no more than what came after the last
    one.
    While a bag is open it is locked against salvaging.
    When a write to the disk fails, the bag is cut behind what is complete and closed with the room that the reserve
    gives back; `RecordingStoppedError` is raised once, and later messages are dropped.
    """

    def __init__(self, folder: Path, largest_bag: int = 0, longest_bag: float = 0.0) -> None:
        """Open a bag.

        Args:
            folder: Bag folder, which must not exist; its parents are made.
            largest_bag: Bytes after which the recording goes on in `<folder>_2`, `_3`, …; 0 for never.
            longest_bag: Seconds after which it does so, too; 0 for never.

        Raises:
            SoftformError: If the folder exists or cannot be written, or is or would go on in another recording's part.
        """
        self._largest_bag = largest_bag
        self._longest_bag = longest_bag
        self._notes: dict[str, str] = {}
        self._definitions = standard_definitions()
        self._topics: dict[str, tuple[str, Sequence[Qos]]] = {}
        self._connections: dict[str, Connection] = {}
        self._writer: BagWriter | None = None
        self.folders: list[Path] = []
        self.message_count = 0
        self._newest = 0
        reject_name_of_a_part(folder)
        self._open(folder)

    @property
    def folder(self) -> Path:
        """Bag folder that is, or was last, written."""
        return self.folders[-1]

    def add_topic(
        self, topic: str, message_type: str, offered_qos: Sequence[Qos] = (), expected_hash: str = ""
    ) -> None:
        """Announce a topic.

        Args:
            topic: Full name.
            message_type: Such as `softform_interfaces/msg/Surface`.
            offered_qos: Profiles that its publishers offer; a replay offers the same.
            expected_hash: Type hash (`RIHS01_…`) that its publishers tell; empty if they do not.

        Raises:
            SoftformError: If the type is not known here, or is another one here than at the publishers.
        """
        if topic not in self._topics:
            ensure_defined(self._definitions, message_type)
            known_hash = self._definitions.hash_rihs01(message_type)
            if expected_hash.startswith("RIHS") and expected_hash != known_hash:
                raise SoftformError(
                    f"{topic} is published with another definition of {message_type} than is installed here.",
                    "Build both ends from the same sources.",
                )
            self._topics[topic] = (message_type, offered_qos)
            if self._writer:
                self._connect(self._writer, topic)

    def write(self, topic: str, timestamp: int, message: bytes) -> None:
        """Write one serialised message.

        Args:
            topic: Full name of an announced topic.
            timestamp: When it was received, ns since the epoch; one before the last message's is written as that: a bag
                that was not closed has no index, and its messages can then be read in order only.
            message: CDR bytes.

        Raises:
            RecordingStoppedError: If a write to the disk failed; not again for later messages.
        """
        if self._writer is None:
            return
        self._newest = max(self._newest, timestamp)
        try:
            self._writer.write(self._connections[topic], self._newest, message)
        except OSError as error:
            self._stop_after(error)
        self.message_count += 1

    def note(self, key: str, value: str) -> None:
        """Keep a remark with the bag that is written (`custom_data` in its metadata)."""
        self._notes[key] = value

    def flush(self) -> None:
        """Bring everything to the disk, and go on in a new bag if this one is large or long.

        Raises:
            RecordingStoppedError: If a write to the disk failed.
        """
        if self._writer is None:
            return
        storage = self._storage(self._writer)
        try:
            if storage.chunk.msgs:
                storage.close_chunk()
            storage.bio.flush()
            os.fdatasync(storage.bio.fileno())
        except OSError as error:
            self._stop_after(error)
        if self._is_full(storage):
            self.close()
            self._open(part_folder(self.folders[0], len(self.folders) + 1))

    def close(self) -> None:
        """Close the bag; does nothing if it is closed.

        Raises:
            RecordingStoppedError: If the disk was full; the bag is readable then, too.
        """
        if self._writer is None:
            return
        self._reserve_file.unlink(missing_ok=True)
        for key, value in self._notes.items():
            self._writer.set_custom_data(key, value)
        try:
            self._writer.close()
        except OSError as error:
            self._stop_after(error)
        self._writer = None

    @property
    def _reserve_file(self) -> Path:
        return self.folder / "reserve"

    def _open(self, folder: Path) -> None:
        if folder.exists():
            raise SoftformError(f"The bag folder {folder} exists already.", "Choose another name, or remove it.")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            writer = BagWriter(folder)
            writer.open()
            hold_for_writing(self._storage(writer).bio)
            self._storage(writer).bio.flush()  # a file without a beginning could not be salvaged
            with (folder / "reserve").open("wb") as reserve:
                os.posix_fallocate(reserve.fileno(), 0, RESERVE)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise SoftformError(
                f"The bag folder {folder} cannot be written: {error.strerror}.", "Free space, or choose another folder."
            ) from error
        self.folders.append(folder)
        self._earlier_messages = self.message_count
        self._writer = writer
        self._connections = {}
        for topic in self._topics:
            self._connect(writer, topic)

    def _is_full(self, storage: McapWriter) -> bool:
        if self._largest_bag and storage.bio.tell() > self._largest_bag:
            return True
        span = storage.message_end_time - storage.message_start_time  # ns; negative without messages
        return self._longest_bag > 0.0 and span > self._longest_bag * 1e9

    def _connect(self, writer: BagWriter, topic: str) -> None:
        message_type, offered_qos = self._topics[topic]
        self._connections[topic] = writer.add_connection(
            topic, message_type, typestore=self._definitions, offered_qos_profiles=offered_qos
        )

    @staticmethod
    def _storage(writer: BagWriter) -> McapWriter:
        assert isinstance(writer.storage, McapWriter)
        return writer.storage

    def _stop_after(self, error: OSError) -> None:
        """Save what is complete, with the room that the reserve gives back."""
        assert self._writer is not None
        with contextlib.suppress(OSError, ValueError):
            self._writer.abort()
        self._writer = None
        self._reserve_file.unlink(missing_ok=True)
        try:
            self.message_count = self._earlier_messages + close_mcap(self.folder / f"{self.folder.name}.mcap")
        except (OSError, SoftformError) as failure:
            raise RecordingStoppedError(
                f"Recording stopped: {error.strerror or error}; {self.folder} could not be closed: {failure}",
                f"Free space on the disk, then run: ./softform record --salvage {self.folder}",
            ) from error
        raise RecordingStoppedError(
            f"Recording stopped: {error.strerror or error}; {self.message_count} messages are in {self.folder}.",
            "Free space on the disk, then start a new recording.",
        ) from error
