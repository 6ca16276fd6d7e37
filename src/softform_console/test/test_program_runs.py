"""Programs of pages: what they are told, and what ends them."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from softform_client.program_file import FolderFiles
from softform_console import program_runs
from softform_console.program_runs import PageFiles, ProgramRuns
from softform_console.protocol import Notice, Program
from softform_console.target_files import TargetFiles
from softform_core.errors import SoftformError
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")
WAITS = "robot: membrane\nblocks:\n  - repeat: 2\n    blocks:\n      - wait: 0.05\n  - wait: {}\n"


class Client:
    epoch = 7
    opened = None

    def __init__(self, namespace, frame):
        assert (namespace, frame) == ("/softform", ROBOT.base_frame)

    def __enter__(self):
        Client.opened = self
        self.cancelled = threading.Event()
        return self

    def __exit__(self, *error):
        pass

    def cancel(self):
        self.cancelled.set()


@pytest.fixture
def runs(monkeypatch, tmp_path):
    monkeypatch.setattr(program_runs, "ShapeClient", Client)
    ended, told = threading.Event(), []
    one = ProgramRuns("/softform", ROBOT, FolderFiles(tmp_path), told.append, ended.set)
    yield SimpleNamespace(programs=one, told=told, ended=ended)
    one.close()


def program(text, run=False, epoch=7):
    return Program(epoch=str(epoch), stamp=1.0, text=text, run=run)


def test_pages_are_told_what_a_program_does_and_what_is_wrong_with_it(runs):
    runs.programs.read(program(WAITS.format(1)))
    (read,) = runs.told
    assert read.fault == "" and [(row.depth, row.number, row.line) for row in read.rows] == [
        (0, "1", 3),
        (1, "1.1", 5),
        (0, "2", 6),
    ]
    runs.programs.read(program(WAITS.format("long")))
    assert "line 6, block 2, wait: " in runs.told[-1].fault and runs.told[-1].rows == []
    with pytest.raises(SoftformError, match="not the program that was read"):
        runs.programs.begin(program(WAITS.format("long"), run=True))


def test_a_program_is_run_and_its_blocks_are_told(runs):
    text = WAITS.format(0.05)
    runs.programs.read(program(text))
    with pytest.raises(SoftformError, match="not the program that was read"):
        runs.programs.begin(program(text + "# changed since", run=True))
    runs.programs.begin(program(text, run=True))
    assert runs.ended.wait(5.0)
    states = runs.told[1:]
    assert [one.row for one in states if one.text == "…"] == [0, 1, 1, 2] and "2 of 2" in [one.text for one in states]
    assert (states[-1].ended, states[-1].row) == ("done", None)


def test_a_program_is_ended_where_it_is_and_none_begins_beside_it(runs):
    text = WAITS.format(60)
    runs.programs.read(program(text))
    runs.programs.begin(program(text, run=True))
    with pytest.raises(SoftformError, match="A program runs"):
        runs.programs.begin(program(text, run=True))
    runs.programs.read(program(text))
    assert isinstance(runs.told[-1], Notice)
    while not any(getattr(one, "row", None) == 2 for one in runs.told):
        time.sleep(0.01)
    runs.programs.cancel()
    assert runs.ended.wait(5.0) and Client.opened.cancelled.is_set()
    assert (runs.told[-1].ended, runs.told[-1].row) == ("stopped", 2)


def test_a_program_that_is_ended_before_its_client_is_there_does_nothing(runs, monkeypatch):
    entered = threading.Event()

    class Late(Client):
        def __enter__(self):
            entered.wait(5.0)
            return super().__enter__()

    monkeypatch.setattr(program_runs, "ShapeClient", Late)
    text = WAITS.format(60)
    runs.programs.read(program(text))
    runs.programs.begin(program(text, run=True))
    runs.programs.cancel()
    entered.set()
    assert runs.ended.wait(5.0)
    assert runs.told[-1].ended == "stopped" and len(runs.told) == 2


def test_a_program_of_an_epoch_that_is_over_moves_nothing(runs):
    text = WAITS.format(60)
    runs.programs.read(program(text))
    runs.programs.begin(program(text, run=True, epoch=6))
    assert runs.ended.wait(5.0) and runs.told[-1].ended == "failed"


def test_programs_of_pages_take_what_was_dropped_and_write_into_one_folder(tmp_path):
    targets = TargetFiles(ROBOT)
    files = PageFiles(targets, tmp_path / "captures")
    cloud = "\n".join(" ".join(map(str, point)) for point in np.random.default_rng(0).uniform(size=(50, 3)))
    for scale in (1, 2):
        targets.upload("a.xyz", "m", cloud.replace("0.", f"{scale - 1}.").encode())
    assert files.shape("a.xyz", "m").points.min() >= 1.0
    for name, unit in (("b.xyz", "m"), ("a.xyz", "mm"), ("/etc/passwd", "m")):
        with pytest.raises(SoftformError):
            files.shape(name, unit)
    assert files.capture("seen.ply") == tmp_path / "captures" / "seen.ply"
    for name in ("/tmp/seen.ply", "../seen.ply", "a/../../seen.ply", "..", "."):
        with pytest.raises(SoftformError, match="is a path"):
            files.capture(name)
