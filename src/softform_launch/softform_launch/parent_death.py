"""Lets a process learn of its parent's end from the kernel (Linux)."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Let the kernel send this process SIGTERM when `parent` ends, and leave at once if it has ended already.

    SIGTERM and not SIGKILL: a node that drives actuators must be able to make them safe first. Meant for the
    `preexec_fn` of `subprocess.Popen`; the signal comes when the parent's *thread* ends, so start the process from one
    that lasts.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)
