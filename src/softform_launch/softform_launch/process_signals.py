"""Signals of processes: noted instead of acted on, held back, or sent by the kernel when a parent ends (Linux)."""

import ctypes
import os
import signal
from contextlib import suppress
from types import FrameType

from softform_core.stop_signals import STOP_SIGNALS, is_ignored

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


def hold_sigint() -> None:
    """Let SIGINT wait until this process unblocks it, across `exec`. Meant for the `preexec_fn` of `subprocess.Popen`.

    Without it a launch that is stopped while it imports may go on: Python raises KeyboardInterrupt wherever it is, and
    loses it in the callbacks of its import system.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


class NotedSignals:
    """Notes the stop signals of this process and wakes up what waits for `descriptor` when one, or SIGCHLD, came.

    So they can be handled between two steps and never within one.
    """

    def __init__(self, keep_ignored: bool = False) -> None:
        """Install the handlers; from now on this process does not end by a stop signal.

        Args:
            keep_ignored: Whether what was ignored stays so (`is_ignored`).
        """
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._writer, False)
        self._noted: list[int] = []
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            if not (keep_ignored and is_ignored(number)):
                signal.signal(number, self._note)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(number)

    @property
    def first(self) -> int | None:
        """The first stop signal not yet taken, if any."""
        return self._noted[0] if self._noted else None

    def take(self) -> list[int]:
        """Return the stop signals since the last call, and let `descriptor` rest."""
        with suppress(BlockingIOError):
            os.read(self.descriptor, 4096)
        taken = []
        while self._noted:  # one at a time: a signal that comes between two steps stays for the next call
            taken.append(self._noted.pop(0))
        return taken
