"""Starts the processes of a launch, shows their output, and ends them all in any case.

Every process leads a session of its own, so that a signal meant for the launch reaches it once and in order: SIGINT,
then SIGTERM, then SIGKILL to whoever is left. Signals that arrive here are only noted and acted on in the one loop, so
that no moment exists in which a process runs and is not known.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from softform_core.stop_signals import STOP_SIGNALS
from softform_launch.launch_file import ProcessDescription
from softform_launch.launch_screen import Screen
from softform_launch.process_signals import NotedSignals, die_with_parent

SIGTERM_AFTER = 5.0  # s after SIGINT
SIGKILL_AFTER = 5.0  # s after SIGTERM
NOT_BEGUN = os.EX_CONFIG  # exit code of a node whose parameters or environment are wrong: nobody waits for it
LONGEST_BACK_OFF = 30.0  # s between two starts of a process that keeps ending
STEADY_AFTER = 10.0  # s; a process that lived this long starts its back-off anew
LONGEST_LINE = 65536  # bytes shown as one line
COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


@dataclass
class _Child:
    """One described process: running, waiting to be started again, or done."""

    description: ProcessDescription
    colour: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    starts: int = 0
    back_off: float = 0.0
    start_again: float | None = None
    partial_line: bytearray = field(default_factory=bytearray)
    last_line: str = ""

    @property
    def output(self) -> IO[bytes] | None:
        return self.process.stdout if self.process else None

    @property
    def is_done(self) -> bool:
        return self.process is None and self.start_again is None


class LaunchRunner:
    """Runs one launch in this process, which must do nothing else."""

    def __init__(self, descriptions: Sequence[ProcessDescription], screen: Screen, signals: NotedSignals) -> None:
        """Take the processes to start, where their output goes, and the source of stop signals."""
        self._children = [
            _Child(description, COLOURS[index % len(COLOURS)]) for index, description in enumerate(descriptions)
        ]
        self._screen = screen
        self._signals = signals
        self._stopping_since: float | None = None
        self._why = ""
        self._last_escalation = 0.0
        self._exit_code = 0

    def run(self) -> int:
        """Start everything, watch until the end, and return the launch's exit code.

        The code is 0 if the launch ended as asked; that of the required process whose end brought it down; 1 if a
        process failed or had to be killed.
        """
        try:
            for child in self._children:
                self._start(child)
            while not all(child.is_done for child in self._children):
                self._wait()
                self._stop_if_asked()  # before looking who has ended: it forgets the SIGCHLD that woke this up
                self._reap()
                self._restart_due()
                self._escalate()
        finally:
            self._signal_all(signal.SIGKILL)
            for child in self._children:
                if child.process:
                    child.process.wait()
            if self._why and self._exit_code:  # others have said much since
                self._say(f"ended with exit code {self._exit_code}: {self._why}")
            self._screen.flush(seconds=1.0)
        return self._exit_code

    def _say(self, text: str) -> None:
        self._screen.show("launch", text.encode(errors="replace"))

    def _start(self, child: _Child) -> None:
        if self._signals.first is not None or self._stopping_since is not None:
            return
        description = child.description
        child.start_again = None
        child.started = time.monotonic()
        child.starts += 1
        this_process = os.getpid()
        try:
            child.process = subprocess.Popen(
                description.command,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **description.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(this_process),
            )
        except OSError as error:
            self._exit_code = self._exit_code or 1
            self._say(f"{description.name} cannot be started: {error}")
            if description.is_required:
                self._begin_to_stop(f"{description.name} is required")
            return
        assert child.process.stdout is not None
        os.set_blocking(child.process.stdout.fileno(), False)
        self._say(f"{description.name} started (pid {child.process.pid})")

    def _wait(self) -> None:
        """Sleep until there is output, a signal, or something due; collect the output."""
        outputs: dict[int, _Child] = {
            child.output.fileno(): child for child in self._children if child.output and not child.output.closed
        }
        waits = [child.start_again - time.monotonic() for child in self._children if child.start_again is not None]
        if self._stopping_since is not None or self._screen.has_backlog:
            waits.append(0.1)
        ready = select.select([self._signals.descriptor, *outputs], [], [], max(0.0, min([*waits, 1.0])))[0]
        for output in ready:
            if output != self._signals.descriptor:
                self._read_output(outputs[output])
        self._screen.flush()

    def _read_output(self, child: _Child) -> None:
        assert child.output is not None
        try:
            read = os.read(child.output.fileno(), LONGEST_LINE)
        except BlockingIOError:
            return
        *lines, rest = bytes(child.partial_line + read).split(b"\n")
        child.partial_line = bytearray(rest)
        if not read:
            child.output.close()
        if child.partial_line and (not read or len(child.partial_line) >= LONGEST_LINE):
            lines.append(bytes(child.partial_line))
            child.partial_line.clear()
        for line in lines:
            child.last_line = line.decode(errors="replace")
            self._screen.show(child.description.name, line, child.colour)

    def _reap(self) -> None:
        for child in self._children:
            if child.process is None:
                continue
            if os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            # The process is gone but still holds its group's number: what it left behind ends with it.
            _signal_group(child.process, signal.SIGKILL)
            exit_code = child.process.wait()
            if child.output and not child.output.closed:
                self._read_output(child)
            if child.output and not child.output.closed:
                child.output.close()
            if child.partial_line:
                self._screen.show(child.description.name, bytes(child.partial_line), child.colour)
                child.partial_line.clear()
            child.process = None
            self._ended(child, exit_code)

    def _ended(self, child: _Child, exit_code: int) -> None:
        description = child.description
        how = f"ended with exit code {exit_code}"
        if exit_code < 0:
            how = f"was ended by {signal.Signals(-exit_code).name}"
        self._say(f"{description.name} {how}")
        if self._stopping_since is not None:
            if exit_code == -signal.SIGKILL:
                self._exit_code = self._exit_code or 1
            return
        if description.respawn and not 0 <= description.respawn_max_retries < child.starts:
            lived = time.monotonic() - child.started
            longer = 0.0 if lived > STEADY_AFTER else min(max(2.0 * child.back_off, 0.5), LONGEST_BACK_OFF)
            child.back_off = longer
            delay = max(description.respawn_delay, longer if child.starts > 1 else 0.0)
            child.start_again = time.monotonic() + delay
            self._say(f"{description.name} starts again in {delay:.1f} s")
        elif description.is_required:
            self._exit_code = exit_code if exit_code >= 0 else 128 - exit_code
            self._begin_to_stop(f"{description.name}, which is required, {how}")
        elif exit_code != 0:
            self._exit_code = self._exit_code or 1
            if exit_code == NOT_BEGUN:
                self._begin_to_stop(f"{description.name} could not begin: {child.last_line}")

    def _restart_due(self) -> None:
        for child in self._children:
            if child.start_again is not None and child.start_again <= time.monotonic():
                self._start(child)

    def _stop_if_asked(self) -> None:
        noted = self._signals.take()
        if noted:
            self._begin_to_stop(f"{signal.Signals(noted[0]).name} received")

    def _begin_to_stop(self, why: str) -> None:
        if self._stopping_since is not None:
            return
        self._stopping_since, self._why = time.monotonic(), why
        self._say(f"stopping: {why}")
        for child in self._children:
            child.start_again = None
            if child.process:
                _signal_group(child.process, signal.SIGTERM if _has_not_begun(child) else signal.SIGINT)

    def _escalate(self) -> None:
        if self._stopping_since is None:
            return
        waited = time.monotonic() - self._stopping_since
        stages = ((SIGTERM_AFTER + SIGKILL_AFTER, signal.SIGKILL), (SIGTERM_AFTER, signal.SIGTERM))
        for after, number in stages:
            if waited >= after and self._last_escalation < after:
                self._last_escalation = after
                names = ", ".join(child.description.name for child in self._children if child.process)
                if names:
                    self._say(f"still running after {after:.0f} s, sending {number.name}: {names}")
                self._signal_all(number)
                return

    def _signal_all(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.process:
                _signal_group(child.process, number)


def _has_not_begun(child: _Child) -> bool:
    """Return whether it is a node of Softform that still imports; SIGINT would make it show a traceback."""
    assert child.process is not None
    if not Path(child.description.command[0]).parent.name.startswith("softform_"):
        return False
    try:
        status = Path(f"/proc/{child.process.pid}/status").read_text()
    except OSError:
        return False
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return not caught >> (signal.SIGTERM - 1) & 1


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a process and all that it started, unless it is reaped: then its number may be another's."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def run_launch(descriptions: Sequence[ProcessDescription]) -> int:
    """Run a launch of some processes in this one until it ends, and return its exit code."""
    runner = LaunchRunner(descriptions, Screen(1), NotedSignals())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [*STOP_SIGNALS, signal.SIGCHLD])
    return runner.run()
