"""Jobs with programs of all manners: how they end, what they write, and who outlives whom."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softform_console.job_output import TerminalOutput, progress_of
from softform_console.job_records import JobStore, process_start
from softform_console.job_runner import JobRunner
from softform_core.errors import SoftformError

BARS = (
    "import sys, time\nfrom tqdm import tqdm\nfor i in tqdm(range({n}), desc='learn', disable=None): time.sleep({s})\n"
)


class Room:
    """A runner of Python programs, whose words are `-c TEXT`."""

    def __init__(self, runs, patience=0.5):
        self.runs, self.told = runs, []
        self.runner = JobRunner(JobStore(runs), self.told.append, (sys.executable,), patience)

    def start(self, text):
        return self.runner.start(["-c", text])

    @property
    def job(self):
        return self.runner.jobs()[0]

    def until(self, condition, patience=60.0):
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, (self.job, self.runner.log())
            time.sleep(0.02)
        return self.job

    def ended(self):
        return self.until(lambda: self.told)


@pytest.fixture
def room(tmp_path):
    one = Room(tmp_path / "runs")
    yield one
    one.runner.close()


def is_alive(process):
    return process_start(process) != 0 and ") Z " not in Path(f"/proc/{process}/stat").read_text()


def pid_said(room):
    room.until(lambda: any(line.startswith("pid ") for line in room.runner.log()))
    return int(next(line for line in room.runner.log() if line.startswith("pid ")).split()[1])


def test_a_job_shows_the_progress_that_its_command_shows_and_what_it_made(room):
    report = room.runs / "evaluate" / "a b" / "report.html"
    made = f"import pathlib; p = pathlib.Path({str(report)!r}); p.parent.mkdir(parents=True); p.write_text('x')\n"
    room.start(BARS.format(n=30, s=0.05) + made + "print(f'{p}, report.pdf beside it'); print('error 0.1 mm')")
    job = room.until(lambda: room.job.done is not None and 0.1 < room.job.done < 0.9)
    assert job.state == "running" and job.step.startswith("learn ") and job.step.endswith("/30") and job.left < 10.0
    job = room.ended()
    assert (job.state, job.text) == ("done", "error 0.1 mm") and job.ended >= job.started
    assert job.files == ["evaluate/a b/report.html", f"jobs/{job.id}.txt"]
    assert room.runner.log() == [f"{report}, report.pdf beside it", "error 0.1 mm"]
    assert (
        room.told[0].text
        == "-c "
        + BARS.format(n=30, s=0.05)
        + made
        + ("print(f'{p}, report.pdf beside it'); print('error 0.1 mm')")
        + " is done: error 0.1 mm"
    )


def test_one_job_at_a_time(room):
    first = room.start("import time; time.sleep(60)")
    with pytest.raises(SoftformError, match=r"A job runs: -c import time"):
        room.start("print(1)")
    with pytest.raises(SoftformError, match="does not run"):
        room.runner.cancel("another")
    room.runner.cancel(first)
    assert room.ended().state == "cancelled"
    room.told.clear()
    room.start("print(1)")
    assert room.ended().state == "done" and [job.state for job in room.runner.jobs()] == ["done", "cancelled"]


def test_what_fails_says_why(room):
    room.start("raise SystemExit('softform: The disk is full. Free space.')")
    assert (room.ended().state, room.job.text) == ("failed", "softform: The disk is full. Free space.")
    assert room.told[0].level == "warning"


def test_a_job_that_is_killed_has_failed_and_says_by_what(room):
    room.start("import os, time; print('pid', os.getpid()); time.sleep(60)")
    os.kill(pid_said(room), signal.SIGKILL)
    assert room.ended().state == "failed" and room.job.text.startswith("it was ended by SIGKILL.")


@pytest.mark.parametrize(
    ("deaf", "text"),
    [("", "stopped"), ("SIGINT", "it was ended by SIGTERM."), ("SIGINT SIGTERM", "it was ended by SIGKILL.")],
)
def test_a_cancel_asks_then_insists(room, deaf, text):
    ignore = "".join(f"signal.signal(signal.{name}, signal.SIG_IGN)\n" for name in deaf.split())
    program = f"import os, signal, time\n{ignore}try:\n  print('pid', os.getpid())\n  time.sleep(60)\n"
    job = room.start(program + "except KeyboardInterrupt:\n  raise SystemExit('stopped')")
    pid = pid_said(room)
    room.runner.cancel(job)
    assert room.job.state in ("ending", "cancelled")
    assert room.ended().state == "cancelled" and room.job.text.startswith(text) and not is_alive(pid)


def test_what_a_job_left_behind_is_ended_with_it(room):
    child = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'while True: print(1)']); "
    room.start(child + "print('pid', p.pid, flush=True); import time; time.sleep(0.5)")
    pid = pid_said(room)
    assert room.ended().state == "done"
    room.until(lambda: not is_alive(pid))


def test_garbage_is_text_in_the_end_and_a_flood_waits(room):
    room.start(
        "import os, sys\nfor _ in range(50): os.write(1, os.urandom(1000) + b'\\xff|100%|x| 1/2 [<\\x1b[2J\\x1b[A')\n"
        "os.write(2, b'y' * 100_000 + b'\\n' + b'end of it')"
    )
    job = room.ended()
    assert job.state == "done" and job.text == "end of it"
    for line in [*room.runner.log(), (room.runs / job.files[-1]).read_text()]:
        assert "\x1b" not in line and "\x00" not in line
    job.model_dump_json()


def test_a_log_is_not_longer_than_it_may_be(room, monkeypatch):
    monkeypatch.setattr("softform_console.job_records._MOST_LOGGED", 10_000)
    room.start("for i in range(5000): print('line', i)")
    job = room.ended()
    log = (room.runs / job.files[-1]).read_text()
    assert len(log) < 11_000 and log.endswith("The log is full: what came later is not in it.\n")
    assert job.text == "line 4999" and len(room.runner.log()) == 60


def test_a_full_disk_costs_the_log_not_the_job(room, monkeypatch):
    job = room.start("import time; time.sleep(0.5); print('done')")
    room.runner._running.log._file = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115

    def keep(record):
        raise SoftformError("No space.", "Free some.")

    monkeypatch.setattr(room.runner._store, "keep", keep)
    assert room.ended().state == "done" and room.job.id == job and room.job.text == "done"


def test_a_folder_that_cannot_be_written_starts_nothing(tmp_path):
    (tmp_path / "runs").write_text("a file")
    room = Room(tmp_path / "runs")
    with pytest.raises(SoftformError):
        room.start("print(1)")
    assert room.runner.jobs() == []


CONSOLE = """
import sys, time
from pathlib import Path
from softform_console.job_records import JobStore
from softform_console.job_runner import JobRunner
runner = JobRunner(JobStore(Path(sys.argv[1])), print, (sys.executable,))
runner.start(["-c", "import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)"])
while not runner.log():
    time.sleep(0.02)
print(runner.log()[0], flush=True)
{then}
"""


def another_console(runs, then):
    process = subprocess.Popen(
        [sys.executable, "-c", CONSOLE.format(then=then), str(runs)], stdout=subprocess.PIPE, text=True
    )
    return process, int(process.stdout.readline().split()[1])


def test_a_console_that_is_killed_takes_its_job_along_and_the_next_one_says_so(tmp_path):
    process, pid = another_console(tmp_path, "time.sleep(60)")
    assert Room(tmp_path).runner.jobs() == []  # another console's, which lives and tells of it
    process.kill()
    process.wait()
    room = Room(tmp_path)
    room.until(lambda: not is_alive(pid))
    assert room.job.state == "lost" and "ended, and it with that" in room.job.text
    room.start("print(1)")
    assert room.ended().state == "done"


def test_a_console_that_ends_cancels_its_job_and_the_next_one_knows(tmp_path):
    process, pid = another_console(tmp_path, "runner.close()")
    assert process.wait(10.0) == 0 and not is_alive(pid)
    assert Room(tmp_path).job.state == "cancelled"


def test_records_that_somebody_spoilt_are_left_out(tmp_path):
    (tmp_path / "jobs").mkdir()
    for name, text in {"a": "{", "b": "[]", "c": '{"id": 1}', "d": "\0", "e": '{"words": "x"}'}.items():
        (tmp_path / "jobs" / f"{name}.json").write_text(text)
    good = {"id": "f", "words": ["evaluate"], "started": 1.0, "console": [1, 2], "state": "done", "ended": 2.0}
    (tmp_path / "jobs" / "f.json").write_text(json.dumps(good))
    (tmp_path / "jobs" / "g.json").write_text(json.dumps({**good, "state": "odd"}))
    assert [job.id for job in Room(tmp_path).runner.jobs()] == ["f"]


@pytest.mark.parametrize(
    ("text", "step", "done", "left"),
    [
        ("membrane:  12%|█▏  | 120/1000 [00:12<01:33,  9.4sample/s]", "membrane 120/1000", 0.12, 93.0),
        ("  3%|▎ | 1/30 [1:00:00<29:00:00, 3600s/it]", "1/30", 0.03, 104400.0),
        ("kernels:   0%|    | 0/6 [00:00<?, ?training/s]", "kernels 0/6", 0.0, None),
        ("    54.8 of 219.2 s      6786 messages ", "55 of 219 s", 0.25, None),
        ("     0.0 of 0.0 s      0 messages ", "0 of 0 s", 1.0, None),
    ],
)
def test_bars_are_read(text, step, done, left):
    found = progress_of(text)
    assert (found.step, found.done, found.left) == (step, done, left)


@pytest.mark.parametrize("text", ["", "100%", "sure: 100%|", "500%|█| 1/2 [00:00<00:00, 1it/s]", "50% of 3/4 [x<y"])
def test_what_is_no_bar_is_none(text):
    assert progress_of(text) is None


def test_lines_are_whole_however_they_are_cut():
    replayed, bar = (
        "     2.0 of 4.0 s   16 messages 16 messages were replayed",
        "learn:  50%|█▏ | 1/2 [00:01<00:01, 1it/s]",
    )
    whole = f"début\r\n{replayed}\r\n{bar}\rlast\r\n".encode()
    for size in range(1, len(whole)):
        output, lines = TerminalOutput(), []
        for begin in range(0, len(whole), size):
            lines += output.take(whole[begin : begin + size])
        assert lines + output.end() == ["début", "16 messages were replayed", "last"] and output.progress.done == 0.5


ASKS = (
    "import sys, termios, time\nprint(sys.stdin.isatty())\n"
    "for n in range(2):\n    termios.tcflush(0, termios.TCIFLUSH)\n"
    "    print('got', repr(input('Which moved? [c1/none]: ')))\n"
    "import os\nprint('nice', os.nice(0))\n"
)


def test_a_job_that_asks_is_answered_once_for_each_question(room):
    job = room.runner.start(["-c", ASKS], asks=True)
    question = room.until(lambda: room.job.question).question
    assert (question.number, question.text, question.choices) == (1, "Which moved? [c1/none]:", ["c1", "none"])
    for number in (0, 2):
        with pytest.raises(SoftformError, match="does not ask that"):
            room.runner.answer(job, number, "c1")
    with pytest.raises(SoftformError, match="does not ask that"):
        room.runner.answer("another", 1, "c1")
    room.runner.answer(job, 1, "c1")
    with pytest.raises(SoftformError, match="does not ask that"):
        room.runner.answer(job, 1, "c1")
    question = room.until(lambda: room.job.question).question
    assert question.number == 2 and "got 'c1'" in room.runner.log()
    room.runner.answer(job, 2, "")
    assert room.ended().state == "done" and room.job.question is None
    assert room.runner.log()[0] == "True" and room.runner.log()[-2:] == ["got ''", f"nice {os.nice(0)}"]
    with pytest.raises(SoftformError, match="does not ask that"):
        room.runner.answer(job, 3, "")


def test_a_job_that_does_not_ask_hears_nothing(room):
    job = room.start("import sys, time; print('so?', end='', flush=True); print(repr(sys.stdin.read())); time.sleep(1)")
    room.until(lambda: room.runner.log())
    with pytest.raises(SoftformError, match="does not ask that"):
        room.runner.answer(job, 1, "c1")
    assert room.runner.log() == ["so?''"] and room.job.question is None
