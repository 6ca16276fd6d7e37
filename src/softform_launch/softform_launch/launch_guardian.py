"""Keeps watch over a launch, so that nothing of it outlives either of the two processes.

The guardian is the process that the user sees; the runner is its child. Killed with SIGKILL, the guardian leaves a
runner that the kernel tells so (it stops in order); killed with SIGKILL, the runner leaves processes that the guardian
adopts (as their subreaper) and ends, among them those that slipped out of their session.
"""

import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable

import psutil

from softform_core.stop_signals import STOP_SIGNALS
from softform_launch.launch_runner import SIGKILL_AFTER, SIGTERM_AFTER
from softform_launch.process_signals import NotedSignals, die_with_parent

_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def run_guarded(run: Callable[[], int]) -> int:
    """Run `run` in a child of this process, pass the stop signals on to it, and return its exit code.

    The child starts with these signals blocked and must unblock them once it can handle them, so that none is lost.
    """
    signals = NotedSignals(keep_ignored=True)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    handled = [*STOP_SIGNALS, signal.SIGCHLD]
    signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    runner = os.fork()
    if runner == 0:
        _be_the_runner(run, guardian)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    status = _watch(runner, signals)
    _end_descendants()
    exit_code = os.waitstatus_to_exitcode(status)
    return exit_code if exit_code >= 0 else 128 - exit_code


def _be_the_runner(run: Callable[[], int], guardian: int) -> None:
    exit_code = 1
    try:
        os.setsid()
        die_with_parent(guardian)
        exit_code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(exit_code)


def _watch(runner: int, signals: NotedSignals) -> int:
    """Pass signals on until the runner has ended; return its wait status."""
    while True:
        # Signals first: a signal of a child that ends from here on is left to wake the wait below.
        for number in signals.take():
            os.kill(runner, number)
        ended = _reap()
        if runner in ended:
            return ended[runner]
        select.select([signals.descriptor], [], [])


def _reap() -> dict[int, int]:
    """Reap every child that has ended; return wait status by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process == 0:
            return ended
        ended[process] = status


def _end_descendants() -> None:
    """End the remaining children of this process, first gently."""
    for number, patience in ((signal.SIGINT, SIGTERM_AFTER), (signal.SIGTERM, SIGKILL_AFTER), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience
        signalled: set[int] = set()
        while time.monotonic() < deadline:
            _reap()
            left = psutil.Process().children(recursive=True)
            if not left:
                return
            for process in left:
                if process.pid not in signalled:
                    signalled.add(process.pid)
                    try:
                        process.send_signal(number)
                    except psutil.NoSuchProcess:
                        continue
            time.sleep(0.02)
