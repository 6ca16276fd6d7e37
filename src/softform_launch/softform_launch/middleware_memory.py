"""What dead processes left of the middleware's shared memory (Fast DDS: segments, ports, their locks).

These leftovers do harm: a port that a killed process read from fills up, and messages to whoever reads from it next are
lost until somebody misses the dead one. The middleware looks for such by the time of day, kept in the port: if that was
set back since, not before it has caught up.
"""

import fcntl
import os
import re
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
OF_MIDDLEWARE = re.compile(r"(?:sem\.)?(fastrtps_[a-z0-9]+)(?:_el|_sl|_mutex)?")
_LOCKS = ("_el", "_sl")


def remove_unused(folder: Path = SHARED_MEMORY, youngest: float = 10.0) -> int:
    """Remove what no process has mapped or locked; returns how many files that were.

    Args:
        folder: Folder of the shared memory.
        youngest: s; what was changed since may be just about to be mapped.
    """
    mapped = re.compile(re.escape(f"{folder}/") + OF_MIDDLEWARE.pattern)
    try:
        found = {path: match[1] for path in folder.iterdir() if (match := OF_MIDDLEWARE.fullmatch(path.name))}
    except OSError:
        return 0
    if not found:
        return 0
    in_use = {name for text in _memory_maps() for name in mapped.findall(text)}
    in_use |= {name for path, name in found.items() if path.name.endswith(_LOCKS) and _is_locked(path)}
    removed = 0
    for path, name in found.items():
        try:
            if name not in in_use and time.time() - path.stat().st_ctime >= youngest:
                path.unlink()
                removed += 1
        except OSError:  # somebody else's, or gone by now
            continue
    return removed


def _memory_maps() -> list[str]:
    texts = []
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:  # it has ended, or is another user's, whose files cannot be removed either
            continue
    return texts


def _is_locked(path: Path) -> bool:
    """Whether a process holds the lock, also one in another container that is not seen here."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
