"""Threads and memory that must not be kept waiting by what only computes."""

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterable
from pathlib import Path

DRIVER, EMULATED_BOARD, STREAM = 20, 15, 10
"""Priorities of drivers, which hold the air; of the emulated board, a computer of its own in a lab; of streamers."""


_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4  # of mlockall
_THREADS = Path("/proc/self/task")


def ask_for_priority(priority: int, threads: Iterable[int] = (0,)) -> str:
    """Ask the system to run threads before all ordinary ones; return what they run as now.

    Where several threads of one process serve a deadline all of them need it: the one that is late may wait for the
    interpreter's lock, which a thread holds on to that other processes keep from running.

    Args:
        priority: 1 … 99 of SCHED_FIFO; 0 to leave them as they are. Without the right to it they stay ordinary too.
        threads: Ids; 0 is the calling one. What they start is ordinary again.
    """
    if priority <= 0:
        return "ordinary"
    try:
        for thread in threads:
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except PermissionError:
        return "ordinary (no right to SCHED_FIFO)"
    except OSError as error:  # a sandbox may know no such call
        return f"ordinary ({error.strerror})"
    return f"SCHED_FIFO {priority}"


def make_ordinary(threads: Iterable[int]) -> None:
    """Let threads of this process, by their ids, run as all others again; what the system does not allow stays."""
    for thread in threads:
        if not (_THREADS / str(thread)).exists():  # it has ended, and another process may have its id now
            continue
        with contextlib.suppress(OSError):
            try:
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            except PermissionError:  # who has a right to SCHED_FIFO by limits.conf alone may not clear the flag
                os.sched_setscheduler(thread, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


def threads_of_this_process() -> list[int]:
    """Return ids of all threads that run now, those of the middleware among them."""
    return [int(entry.name) for entry in _THREADS.iterdir()]


def lock_memory() -> str:
    """Ask the system to keep in memory what this process has used once; return what was granted.

    It takes no more memory for that. It is asked only where no limit is set: beyond one, later requests of memory fail.
    """
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY:
        return "not locked (limited by RLIMIT_MEMLOCK)"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_CURRENT | _FUTURE | _ON_FAULT) != 0:
        return f"not locked ({os.strerror(ctypes.get_errno())})"
    return "locked"
