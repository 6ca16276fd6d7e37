"""Bags as they are read: nothing in them is written, and what is not whole is said."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader

from softform_core.errors import SoftformError
from softform_recording.bag_writer import summary_checksums
from softform_recording.parts import files_of, part_folders
from softform_recording.salvage import MAGIC, check_not_held, has_end

_FILES = (".mcap", ".db3")


def bag_parts(bag: Path) -> list[Path]:
    """Return the parts of a bag to read, in order: a file alone, or a folder and those that continue its recording.

    A folder without `metadata.yaml` stands for the one file in it.

    Raises:
        SoftformError: If there is no bag, or a part of it is being recorded, was not closed, or is damaged at its end.
    """
    if not bag.exists():
        raise SoftformError(f"There is no bag {bag}.", "Recordings of launches are in runs/live/bags.")
    if bag.is_file() and bag.suffix not in _FILES:
        raise SoftformError(f"{bag} is no bag.", f"Give the folder of one, or its file ({', '.join(_FILES)}).")
    parts = part_folders(bag) if bag.is_dir() else [bag]
    if len(parts) > 1 and not any(file.stat().st_size for file in files_of(parts[-1], *_FILES)):
        parts.pop()  # made just before the end: nothing came to be in it
    return [_checked(part, bag) for part in parts]


def _checked(part: Path, bag: Path) -> Path:
    files = files_of(part, *_FILES) if part.is_dir() else [part]
    metadata = part / "metadata.yaml"
    if part.is_dir() and not (metadata.is_file() and metadata.stat().st_size):  # a full disk leaves an empty one
        if len(files) != 1:
            raise SoftformError(
                f"{part} has no metadata.yaml, and {len(files) or 'no'} files of messages ({', '.join(_FILES)}).",
                "Give the file that you mean." if files else "Give the folder of a bag.",
            )
        (part,) = files
    for file in files:
        with reading(file):
            if file.suffix == ".mcap":
                _check_ends(file, bag)
            elif any(file.with_name(file.name + end).exists() for end in ("-wal", "-journal")):
                raise SoftformError(
                    f"{file} is still being written, or its recording was cut off.",
                    "End its recording; one that was cut off is completed by opening it once with sqlite3.",
                )
    return part


def _check_ends(file: Path, bag: Path) -> None:
    with file.open("rb") as mcap:
        begin = mcap.read(len(MAGIC))
        if begin and begin != MAGIC:
            again = "Run `git lfs pull`." if begin == b"version " else "Get it again from where it was recorded."
            raise SoftformError(f"{file} is no MCAP file.", again)
        if not has_end(mcap):
            check_not_held(mcap)
            raise _not_whole(file, "has no end: it is still being written, or its recording was cut off", bag)
        told, found = summary_checksums(mcap)
    if told and told != found:
        raise _not_whole(file, "is damaged: its summary does not agree with its checksum", bag)


def _not_whole(part: Path, how: str, bag: Path | None = None) -> SoftformError:
    """Return what is said of a damaged part of a bag, by default of all of it."""
    if part.suffix == ".mcap" or (part.is_dir() and files_of(part, ".mcap")):
        saved = quote(str(bag or part))
        return SoftformError(
            f"{part} {how}.", f"Put what is whole into a new bag: ./softform record --salvage {saved} --output NEW"
        )
    return SoftformError(f"{part} {how}.", "Get it again from where it was recorded.")


@contextmanager
def reading(bag: Path) -> Iterator[None]:
    """Say in two sentences what is wrong with a bag whose bytes may be anything."""
    try:
        yield
    except SoftformError:
        raise
    except PermissionError as error:
        raise SoftformError(f"{bag} cannot be read: {error.strerror}.", "Check its permissions.") from error
    except Exception as error:  # rosbags raises what its parsers raise
        reason = str(error).rstrip(".") or type(error).__name__
        raise _not_whole(bag, f"cannot be read: {reason}") from error


def whole_messages(
    bag: Path, reader: Reader | AnyReader, connections: Sequence[Connection]
) -> Iterator[tuple[Connection, int, bytes]]:
    """Yield the topic, time (ns) and bytes of all messages of some topics.

    Raises:
        SoftformError: At a message that cannot be read, or if fewer or more come than the bag says that it holds.
    """
    count, promised = 0, sum(connection.msgcount for connection in connections)
    with reading(bag):
        for connection, moment, message in reader.messages(connections=connections) if connections else ():
            count += 1
            yield connection, moment, bytes(message)
    if count != promised:
        raise _not_whole(bag, f"is damaged: {count} messages could be read where it says that it holds {promised}")
