"""Runs one command of Softform at a time, in a process group of its own, and knows how it goes."""

import contextlib
import logging
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence

from softform_console.job_messages import Job, Question
from softform_console.job_output import TerminalOutput
from softform_console.job_records import JobLog, JobRecord, JobStore
from softform_console.protocol import Notice
from softform_core.errors import SoftformError

PROGRAM = (sys.executable, "-m", "softform_core.cli.main")
_PATIENCE_SECONDS = 15.0
"""Time between two signals to a job that shall end, s: SIGINT, then SIGTERM, then SIGKILL."""

_READ_BYTES, _READ_SECONDS = 2**14, 0.02
"""A job that writes faster than so much in so long waits, so that it does not keep the console busy."""

_MOST_READS = 100
_NICE = 19
_QUESTION_SECONDS = 0.3
"""Silence after which a line without an end is a question, s."""

_CHOICES = re.compile(r"\[([^\[\]]+)\]:?$")
_LOOK_SECONDS = 0.2
_WINDOW = (24, 200)
_CLOSING_SECONDS = 2.0


class JobRunner:
    """Starts, watches and ends jobs; usable from any thread. A job ends with the console.

    A job has a terminal of its own, as commands show their progress to none other. One that asks hears from it what
    pages answer; its question is the last line that it wrote, which has no end.

    Args:
        store: Keeps records and logs.
        tell: Takes what all pages should know.
        program: What is started, before the words of a job.
        patience: Time between the signals of a cancel, s.
    """

    def __init__(
        self,
        store: JobStore,
        tell: Callable[[Notice], None],
        program: Sequence[str] = PROGRAM,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._store, self._tell, self._program, self._patience = store, tell, program, patience
        self._lock, self._is_closed = threading.Lock(), False
        self._running: _Running | None = None
        self._jobs = store.earlier()
        self._newest_log: list[str] = []

    def start(self, words: list[str], asks: bool = False) -> str:
        """Start a job; returns its id. One that `asks` commands the robot itself, and gives way to nobody.

        Raises:
            SoftformError: If another one runs, or it cannot be started.
        """
        with self._lock:
            if self._is_closed:
                raise SoftformError("The console ends.", "Start it again.")
            if self._running is not None:
                command = " ".join(self._running.record.words)
                raise SoftformError(f"A job runs: {command}.", "Wait until it has ended, or cancel it.")
            record = self._store.begin(words)
            self._running = _Running(record, self._store.log(record), asks)
            self._jobs.insert(0, record)
            threading.Thread(target=self._run, args=(self._running,), name="job", daemon=True).start()
            return record.id

    def answer(self, job: str, number: int, text: str) -> None:
        """Answer a question of a job.

        Raises:
            SoftformError: If it does not wait for that answer any more.
        """
        with self._lock:
            running = self._running
            if running is None or running.record.id != job or not running.answer(number, text):
                raise SoftformError("The job does not ask that any more.", "Look at what it asks now.")

    def cancel(self, job: str) -> None:
        """Ask a job to end, and make it after a while.

        Raises:
            SoftformError: If it does not run.
        """
        with self._lock:
            if self._running is None or self._running.record.id != job:
                raise SoftformError("This job does not run.", "Look at the list.")
            if self._running.cancelled_at is None:
                self._running.cancelled_at, self._running.record.state = time.monotonic(), "ending"

    def jobs(self) -> list[Job]:
        """Return the newest jobs, the newest first."""
        with self._lock:
            running = self._running
            return [
                record.shown(self._store.files(record), *running.step, running.question)
                if running is not None and record is running.record
                else record.shown(self._store.files(record))
                for record in self._jobs
            ]

    def log(self) -> list[str]:
        """Return the last lines of the newest job of this console."""
        with self._lock:
            return list(self._newest_log if self._running is None else self._running.log.lines)

    def close(self) -> None:
        """End what runs; what does not end soon is ended by the kernel with this process."""
        with self._lock:
            self._is_closed, running = True, self._running
            if running is not None:
                running.cancelled_at = running.cancelled_at or time.monotonic()
        if running is not None and not running.is_over.wait(_CLOSING_SECONDS):
            running.signal(signal.SIGTERM)
            running.is_over.wait(_CLOSING_SECONDS)

    def _run(self, running: "_Running") -> None:
        """Start a job and see it to its end; the kernel ends the job where this thread ends."""
        record = running.record
        try:
            code = running.carry_out([*self._program, *record.words], self._patience)
            record.state = "cancelled" if running.cancelled_at is not None else "failed" if code else "done"
            record.text = _last_line(running.log, code)
        except Exception as error:
            logging.getLogger(__name__).exception("a job could not be carried out")
            record.state, record.text = "failed", f"It could not be carried out: {error}."
        record.ended, record.made = time.time(), running.log.made
        running.log.close()
        with self._lock:
            self._newest_log, self._running = list(running.log.lines), None
        with contextlib.suppress(SoftformError):  # a full disk: it is in this console's list
            self._store.keep(record)
        running.is_over.set()
        said = {"done": "is done", "cancelled": "was cancelled"}.get(record.state, "failed")
        self._tell(
            Notice(
                level="warning" if record.state == "failed" else "info",
                about="job",
                text=f"{' '.join(record.words)} {said}: {record.text}",
            )
        )


class _Running:
    """A job that runs."""

    def __init__(self, record: JobRecord, log: JobLog, asks: bool) -> None:
        self.record, self.log, self.output, self._asks = record, log, TerminalOutput(), asks
        self._terminal, self._answers, self._written_at = -1, 0, time.monotonic()
        self.cancelled_at: float | None = None
        self.is_over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def step(self) -> tuple[str, float | None, float | None]:
        """Its step, share of that that is done, and time left, s."""
        progress = self.output.progress
        return ("", None, None) if progress is None else (progress.step, progress.done, progress.left)

    @property
    def question(self) -> Question | None:
        """What it asks."""
        text = self.output.unfinished
        if not self._asks or not text or time.monotonic() - self._written_at < _QUESTION_SECONDS:
            return None
        found = _CHOICES.search(text)
        return Question(number=self._answers + 1, text=text, choices=found[1].split("/") if found else [])

    def answer(self, number: int, text: str) -> bool:
        """Write an answer to its terminal; returns whether that question waits."""
        question = self.question
        if question is None or question.number != number:
            return False
        os.write(self._terminal, f"{text}\n".encode())
        self._answers, self._written_at = number, time.monotonic()
        return True

    def signal(self, number: signal.Signals) -> None:
        """Signal it and all that it started."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def carry_out(self, command: list[str], patience: float) -> int:
        """Start it, and return its exit code when it has ended."""
        terminal, other_end = pty.openpty()
        self._terminal = terminal
        try:
            termios.tcsetwinsize(other_end, _WINDOW)
            nice = 0 if self._asks else _NICE
            wrapper = [sys.executable, "-m", "softform_console.job_process", str(os.getpid()), str(nice)]
            self._process = subprocess.Popen(
                [*wrapper, *command],
                stdin=other_end if self._asks else subprocess.DEVNULL,
                stdout=other_end,
                stderr=other_end,
                env={**os.environ, "TERM": "dumb", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
            os.close(other_end)
            signals = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
            while not self._has_ended():
                self._read(terminal, _LOOK_SECONDS)
                since = None if self.cancelled_at is None else time.monotonic() - self.cancelled_at
                if signals and since is not None and since >= (3 - len(signals)) * patience:
                    self.signal(signals.pop(0))
            self.signal(signal.SIGKILL)  # what it left behind; its number is its own until `wait`
            for _ in range(_MOST_READS):
                if not self._read(terminal, 0.0):
                    break
            self.log.add(self.output.end())
            return self._process.wait()
        finally:
            os.close(terminal)

    def _has_ended(self) -> bool:
        assert self._process is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _read(self, terminal: int, seconds: float) -> bool:
        """Take what came within a time; returns whether something did."""
        if not select.select([terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(terminal, _READ_BYTES)
        except OSError:  # nobody has the other end any more
            time.sleep(_READ_SECONDS)
            return False
        self.log.add(self.output.take(data))
        self._written_at = time.monotonic()
        time.sleep(_READ_SECONDS)
        return bool(data)


def _last_line(log: JobLog, code: int) -> str:
    last = log.lines[-1] if log.lines else ""
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}. {last}".strip()
    return last or ("" if code == 0 else f"exit code {code}, and it said nothing.")
