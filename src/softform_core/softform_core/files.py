"""Files and stores on disk: written whole or not at all, and by one process at a time."""

import errno
import fcntl
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from softform_core.errors import SoftformError
from softform_core.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` under a hidden temporary name (`.name.xxxx.part`) in the same folder, then rename it.

    A link stays, and the file that it points to is replaced. A device, such as /dev/null, or a pipe is written to.

    Raises:
        SoftformError: If the file cannot be written; nothing is left behind and an older file stays as it was.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        path = path.resolve() if path.is_symlink() else path
        replace_file(path, data)
        sync_folder(path.parent)
    except OSError as error:
        raise SoftformError(
            f"{path} cannot be written: {error.strerror or error}.", "Check the folder, its permissions and free space."
        ) from error


def write_figure(path: str | Path, figure: "Figure") -> None:
    """Draw a figure into a file, as `write_atomically`; its suffix chooses the format, PNG without one.

    Raises:
        SoftformError: If the file cannot be written, or matplotlib does not know the format.
    """
    picture, kind = io.BytesIO(), Path(path).suffix.lstrip(".").lower() or "png"
    if kind not in (known := sorted(figure.canvas.get_supported_filetypes())):
        raise SoftformError(f"{path}: '{kind}' is no format of pictures.", f"Give one of: {', '.join(known)}.")
    figure.savefig(picture, format=kind)
    write_atomically(path, picture.getvalue())


def named(path: Path) -> Path:
    """Return a path that ends with a name: `.` and `..` by where they lead, others as they are."""
    return path.resolve() if path.name in ("", "..") else path


def made_folder(folder: Path) -> None:
    """Make a folder, with those that it lies in, unless it is there.

    Raises:
        SoftformError: If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SoftformError(
            f"{folder} cannot be made: {error.strerror or error}.", "Free its place, or give another."
        ) from error


def replace_file(path: Path, data: bytes | bytearray | memoryview) -> None:
    """Put a file with `data` in the place of an older one; its name outlives a power cut once `sync_folder` was called.

    Raises:
        OSError: If it cannot be written; nothing is left behind and an older file stays as it was.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave a renamed file without its content
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a power cut, where its file system knows how and it may be read.

    Raises:
        OSError: If the disk fails.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP):
            raise


_WAIT_OR_ELSEWHERE = "Wait until it is done, or give another --output."

_MOST_OF_WHO = 500
"""Bytes that are read at most of who holds a lock."""


@contextmanager
def only_writer(output: Path, activity: str, next_step: str = _WAIT_OR_ELSEWHERE) -> Iterator[None]:
    """Hold a lock beside a store, which the system lets go even if this process is killed; it says who holds it.

    Args:
        output: The store.
        activity: What is done to it, for who is refused.
        next_step: What who is refused can do.

    Raises:
        SoftformError: If another process holds it, or the folder cannot be written.
    """
    output = named(output)
    if not output.name:
        raise SoftformError(f"{output} cannot be a store.", "Give a folder of its own as --output.")
    lock = output.with_name(f".{output.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)  # not emptied: it says who holds it
    except OSError as error:
        raise SoftformError(
            f"{output.parent} cannot be written: {error.strerror}.", "Give another --output."
        ) from error
    with os.fdopen(handle, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            who = printable(file.read(_MOST_OF_WHO).decode(errors="replace"), _MOST_OF_WHO).strip()
            raise SoftformError(
                f"Another process{who and f' ({who})'} is {activity} into {output}.", next_step
            ) from error
        _write_over(file, f"{os.getpid()}: {Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}".encode())
        try:
            yield
        finally:
            _write_over(file, b"")


def _write_over(file: BinaryIO, content: bytes) -> None:
    """Let a file that is locked hold this; on a full disk it says nothing, and is locked all the same."""
    with suppress(OSError):
        file.seek(0)
        file.truncate()
        file.write(content)
        file.flush()
