"""What is kept of jobs in `runs/jobs`: a record and a log each, which outlive the console."""

import contextlib
import json
import os
import re
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from softform_console.job_messages import Job, Question
from softform_core.errors import SoftformError
from softform_core.files import made_folder, write_atomically

FOLDER = "jobs"
_MOST_JOBS = 20
_MOST_LOGGED = 4 * 2**20
_LINES_SHOWN = 60
_MADE = re.compile(r"\.(?:html|pdf|png|csv|json)\b")
_LOST = "The console that started it ended, and it with that. Start it again: it goes on where it stopped."


def process_start(process: int) -> int:
    """Return when a process was started, in ticks since boot, which tells it from a later one of its number; else 0."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return 0


@dataclass
class JobRecord:
    """A job as it is kept.

    Attributes:
        id: Its name, by date and time.
        words: Its command line.
        started: Time of its start, s since the epoch.
        console: Process that started it, with its `process_start`.
        state: See `Job`.
        ended: Time of its end.
        text: Its last line, or why it failed.
        made: Files that it says it made, relative to the folder of runs.
    """

    id: str
    words: list[str]
    started: float
    console: tuple[int, int]
    state: str = "running"
    ended: float | None = None
    text: str = ""
    made: list[str] = field(default_factory=list)

    def shown(
        self,
        files: list[str],
        step: str = "",
        done: float | None = None,
        left: float | None = None,
        question: Question | None = None,
    ) -> Job:
        """Return it as pages are shown it."""
        values: dict[str, Any] = {name: getattr(self, name) for name in ("id", "state", "started", "ended", "text")}
        command = " ".join(self.words)
        return Job(**values, command=command, step=step, done=done, left=left, files=files, question=question)


class JobStore:
    """Records and logs below a folder of runs.

    Args:
        runs: The folder of runs.
    """

    def __init__(self, runs: Path) -> None:
        self._runs, self._folder = runs, runs / FOLDER
        self._console = os.getpid(), process_start(os.getpid())

    def begin(self, words: list[str]) -> JobRecord:
        """Return the record of a new job, which is kept from now on.

        Raises:
            SoftformError: If it cannot be.
        """
        made_folder(self._folder)
        now = time.time()
        stem, number = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{words[0]}", 1
        while self._file(name := stem if number == 1 else f"{stem}-{number}").exists():
            number += 1
        record = JobRecord(name, words, now, self._console)
        self.keep(record)
        return record

    def keep(self, record: JobRecord) -> None:
        """Write a record.

        Raises:
            SoftformError: If it cannot be.
        """
        write_atomically(self._file(record.id), json.dumps(asdict(record), indent=2).encode())

    def earlier(self) -> list[JobRecord]:
        """Return the records of the newest jobs, the newest first; what no console knows the end of is lost."""
        found = []
        for file in sorted(self._folder.glob("*.json"), reverse=True):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                record = JobRecord(**json.loads(file.read_text(encoding="utf-8")))
                owner, began = record.console
                if record.state in ("running", "ending"):
                    if process_start(owner) == began and owner != os.getpid():
                        continue  # of another console, which tells of it
                    record.state, record.text = "lost", _LOST
                record.shown([])
                found.append(record)
            if len(found) == _MOST_JOBS:
                break
        return found

    def files(self, record: JobRecord) -> list[str]:
        """Return its files that are there, relative to the folder of runs, the log last."""
        return [one for one in [*record.made, f"{FOLDER}/{record.id}.txt"] if (self._runs / one).is_file()]

    def log(self, record: JobRecord) -> "JobLog":
        """Return the log of a job."""
        return JobLog(self._file(record.id).with_suffix(".txt"), self._runs)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


class JobLog:
    """Lines of a job: the last ones are remembered, the first megabytes written.

    Attributes:
        lines: The last lines.
        made: Files that lines named, relative to the folder of runs, in their order.
    """

    def __init__(self, file: Path, runs: Path) -> None:
        self.lines: deque[str] = deque(maxlen=_LINES_SHOWN)
        self.made: list[str] = []
        self._runs, self._written, self._prefix = runs, 0, re.compile(re.escape(str(runs)) + "/")
        try:
            self._file = file.open("w", encoding="utf-8", buffering=1)
        except OSError as error:
            raise SoftformError(f"{file} cannot be written: {error.strerror}.", "Free space or permissions.") from error

    def add(self, lines: list[str]) -> None:
        """Take lines; a full disk costs what is written, not the job."""
        for line in lines:
            self.lines.append(line)
            self._note_made(line)
            if self._written < _MOST_LOGGED:
                self._written += len(line) + 1
                rest = "" if self._written < _MOST_LOGGED else "\nThe log is full: what came later is not in it."
                with contextlib.suppress(OSError):
                    self._file.write(f"{line}{rest}\n")

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _note_made(self, line: str) -> None:
        if (begin := self._prefix.search(line)) is None:
            return
        for end in _MADE.finditer(line, begin.end()):
            path = line[begin.end() : end.end()]
            if path not in self.made and (self._runs / path).is_file() and len(self.made) < 100:
                self.made.append(path)
