"""Programs on a running stack, from a terminal and from a page: what the robot is commanded, and what ends them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from console_pages import address_of, page_of

from softform_core.shapes.read import read_shape
from softform_interfaces.msg import DriverState
from softform_ros.service_calls import call_driver

EXAMPLE = Path(__file__).parents[1] / "examples" / "programs" / "breathe.yaml"
LONG = "robot: membrane\nblocks:\n  - move_to_values: {low}\n  - wait: 60\n  - move_to_values: {high}\n"
LOW, HIGH = [700.0] * 9, [3000.0] * 9

pytestmark = pytest.mark.timeout(240)


def begun(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "softform_core.cli.main", "run", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def written(folder, text):
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


def is_at(observer, values):
    return bool(observer.values) and np.abs(observer.measured - values).max() < 200.0


def waiting(tmp_path, observer):
    """A program that has moved the robot low, and would move it high in a minute."""
    return wait_for_low(observer, begun(written(tmp_path, LONG.format(low=LOW, high=HIGH))))


def wait_for_low(observer, process):
    """Wait until the first block of `LONG` is done."""
    assert next((line for line in process.stderr if line.startswith("1 move") and " s)" in line), None), process.wait()
    assert is_at(observer, LOW)
    return process


@pytest.mark.long
def test_the_example_is_run(observer):
    check = begun(EXAMPLE, "--check")
    assert check.wait(60.0) == 0 and "10 blocks" in check.stdout.read() and not observer.commands
    process = begun(EXAMPLE, "--json", "-")
    out, told = process.communicate(timeout=180.0)
    assert process.returncode == 0, told
    result = json.loads(out)
    assert (result["state"], result["block"], result["error_code"]) == ("done", None, 0)
    blocks = [step["block"] for step in result["steps"]]
    assert blocks[:4] == ["1", "2", "3", "4"] and blocks[-9:] == ["5.1", "5.2", "5.3"] * 3
    assert result["steps"][0]["predicted"] < 1e-3 and 0.0 < result["steps"][2]["measured"] < 0.02
    commanded = np.array([list(one.value) for one in observer.commands])
    for height in (800.0, 200.0):
        assert (np.abs(commanded - height) < 1.0).all(axis=1).any()
    assert observer.state == DriverState.RUNNING and is_at(observer, [200.0] * 9)
    assert "5.3 wait 0.5 s" in told


@pytest.mark.long
def test_a_capture_is_written_beside_the_program_and_a_missing_file_moves_nothing(observer, tmp_path):
    text = f"robot: membrane\nblocks:\n  - move_to_values: {LOW}\n  - capture: seen.ply\n"
    process = begun(written(tmp_path, text))
    assert process.wait(120.0) == 0, process.stderr.read()
    assert len(read_shape(tmp_path / "seen.ply").points) > 1000
    observer.at_rest()
    process = begun(written(tmp_path, text + "  - move_to_shape: none.ply\n    unit: mm\n"))
    assert process.wait(120.0) == 2 and "line 5, block 3" in process.stderr.read()
    assert not observer.commands


def test_interrupted_it_says_where_it_ended_and_the_robot_stays(observer, tmp_path):
    slow = f"robot: membrane\nblocks:\n  - wait: 0\n  - move_to_values: {[5000.0] * 9}\n"
    process = begun(written(tmp_path, slow))
    observer.wait_for(lambda: observer.measured.min() > 300.0, "motion")
    process.send_signal(signal.SIGINT)
    assert process.wait(30.0) == 130 and "block 2 (line 4)" in process.stderr.read()
    time.sleep(1.0)
    observer.forget()
    observer.wait_for(lambda: len(observer.values) > 10, "values")
    assert observer.state == DriverState.RUNNING and observer.measured.max() < 4500.0
    process = waiting(tmp_path, observer)
    process.send_signal(signal.SIGINT)
    assert process.wait(30.0) == 130 and "block 2 (line 4), wait 60 s" in process.stderr.read()


def test_after_a_stop_and_reset_the_program_that_waited_goes_on_in_nothing(observer, tmp_path):
    text = LONG.format(low=LOW, high=HIGH).replace("60", "6")
    process = wait_for_low(observer, begun(written(tmp_path, text)))
    for service in ("stop", "reset"):
        assert call_driver(observer.node, service, 30.0).success
    assert process.wait(30.0) == 1 and "since the program began" in process.stderr.read()
    observer.forget()
    time.sleep(6.0)
    assert not observer.commands and observer.state == DriverState.SAFE


@pytest.fixture
def page(observer, stack):
    with page_of(address_of(stack)) as one:
        one.wait_for("state", lambda state: state["robots"][0]["driver"]["state"] == "safe")
        one.operate()
        one.messages.clear()  # what was said of programs before
        yield one


def run_on(page, text):
    """Have a page's program read, and run it; returns the rows."""
    page.send(type="program", epoch=page.epoch, text=text)
    read = page.wait_for("program_read", lambda read: read["text"] == text)
    assert read["fault"] == ""
    page.send(type="program", epoch=page.epoch, text=text, run=True)
    return read["rows"]


@pytest.mark.long
def test_a_page_reads_and_runs_a_program(page, observer, tmp_path):
    page.send(type="program", epoch=page.epoch, text="robot: membrane\nblocks:\n  - wait: long\n")
    assert "line 3, block 1, wait" in page.wait_for("program_read")["fault"]
    rows = run_on(page, f"robot: membrane\nblocks:\n  - move_to_values: {LOW}\n  - wait: 1\n")
    assert [row["number"] for row in rows] == ["1", "2"]
    page.wait_for("program_state", lambda one: one["row"] == 1)
    assert is_at(observer, LOW) and page.robot["steering"] == "goal"
    assert page.wait_for("program_state", lambda one: one["ended"])["ended"] == "done"
    page.wait_for("state", lambda state: state["robots"][0]["steering"] == "none")
    assert observer.state == DriverState.RUNNING


@pytest.mark.parametrize("end", ["cancel", "silence", "stop"])
def test_what_ends_a_program_of_a_page(page, observer, end):
    run_on(page, LONG.format(low=LOW, high=HIGH).replace("60", "4"))
    page.wait_for("program_state", lambda one: one["row"] == 1)
    page.drag(("sheet", 0.5, 0.5, (0.0, 0.0, 0.03)))
    assert "goal" in page.wait_for("notice", lambda notice: notice["about"] == "points")["text"]
    if end == "cancel":
        page.send(type="cancel")
    elif end == "silence":
        page.beats.clear()
    else:
        page.send(type="stop")
    ended = page.wait_for("program_state", lambda one: one["ended"], 3.0)
    assert (ended["row"], ended["ended"]) in ((1, "stopped"), (1, "failed"))
    time.sleep(5.0)
    assert max(max(one.value) for one in observer.commands) < 800.0
    # Nobody is there any more after a silence: the robot is let go of.
    ends = {"cancel": DriverState.RUNNING, "silence": DriverState.SAFE, "stop": DriverState.FAULT}
    assert observer.state == ends[end]
