"""Worker processes: how many, and how they end."""

import os
import threading
from multiprocessing import connection, parent_process


def default_jobs() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def end_with_parent() -> None:
    """Watch the process that made this worker and end with it: a killed process cannot tell its workers to stop."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
