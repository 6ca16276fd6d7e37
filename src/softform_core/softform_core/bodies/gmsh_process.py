"""gmsh within a process that has signals and threads of its own."""

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from softform_core.errors import SoftformError

__all__ = ["started_gmsh"]

_SIZE_OF_ACTION = 512
"""Bytes, no fewer than a `struct sigaction` of any platform has."""
_ONE_AT_A_TIME = Lock()
"""gmsh has one model for all threads of a process."""


@contextmanager
def started_gmsh() -> Iterator[Any]:
    """The module, ready and silent; what goes wrong in it becomes a clear error."""
    try:
        import gmsh
    except (ImportError, OSError) as error:
        raise SoftformError(
            f"gmsh, which meshes this body, cannot be loaded: {error}",
            "Install it: .venv/bin/pip install -r requirements-gmsh.txt; and what it needs, on Debian: apt-get install "
            "libglu1-mesa libxcursor1 libxft2 libxinerama1",
        ) from None
    with _ONE_AT_A_TIME:
        yield from _started(gmsh)


def _started(gmsh: Any) -> Iterator[Any]:
    with _signals_kept():
        gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("General.NumThreads", 1)
        yield gmsh
    except SoftformError:
        raise
    except Exception as error:  # gmsh raises nothing more exact
        raise SoftformError(
            f"gmsh cannot mesh the body: {error}.",
            "Look for chambers or parts that just touch each other or the outside, and for walls far thinner than "
            "mesh_size, or choose a smaller mesh_size.",
        ) from error
    finally:
        gmsh.finalize()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Put back what a process does on signals: gmsh lets SIGTERM and SIGPIPE end it, though a node has to be made safe.

    By the C library, as Python's `signal.signal` works in the main thread alone.
    """
    of_process, kept = ctypes.CDLL(None), []
    for number in sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}):
        action = ctypes.create_string_buffer(_SIZE_OF_ACTION)
        if of_process.sigaction(int(number), None, action) == 0:
            kept.append((int(number), action))
    try:
        yield
    finally:
        for known, action in kept:
            of_process.sigaction(known, action, None)
