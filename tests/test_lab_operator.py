"""A lab operator's hour: scans come as files in the scanner's own frame; registered, they measure a shape reached."""

import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from softform_core.frames.store import open_frames
from softform_core.paths import config_dir
from softform_core.registration.scanner_pose import kept_registration, scanner_place
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.shapes.write import write_ply
from softform_core.units import MM_PER_M
from softform_tools.demo_report import resting_errors

STACK = {"scanner_pose": "bench"}
"""The rig's scanner stands where config/nodes/scanner_pose.yaml says; the stack is not told."""

pytestmark = [pytest.mark.timeout(120)]
ROBOT = load_robot("membrane")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("data")
        patch.setenv("SOFTFORM_DATA", str(place))
        patch.setenv("SOFTFORM_OUTPUT_ROOT", str(place))
        yield place


@pytest.fixture(scope="module")
def stack(data, stacks):
    return stacks.launched_with(STACK)


def run(*words, code=0):
    command = ["nice", sys.executable, "-m", "softform_core.cli.main", *map(str, words)]  # the rig goes first
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def wait_for(found, seconds, what):
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)
    return value


def test_register_then_reach_a_shape_and_measure_it(stack, tmp_path):
    folder = stack.run_dir / "scans"
    ready = time.time() + 3.0  # the chambers were tested as the driver was activated: the robot comes to rest

    def scans_at_rest():
        return [one for one in sorted(folder.glob("*.ply")) if one.stat().st_mtime > ready]

    scan = wait_for(scans_at_rest, 30.0, "a scan")[0]
    wait_for(lambda: "./softform register SCAN --robot membrane --unit mm --name bench" in stack.log, 20.0, "a word")
    listed = run("register", scan, "--unit", "mm", "--name", "bench", code=2)
    assert "which of 8 placements" in listed.stderr and "--choose" in listed.stderr
    # The operator sees the scanner stand before the robot, high up.
    (chosen,) = re.findall(r"(\d): origin of the scans at x -?[0-2], y -2[12]\d, z 5[12]\d mm", listed.stdout)
    run("register", scan, "--unit", "mm", "--name", "bench", "--choose", chosen)
    assert kept_registration("membrane", "bench").with_suffix(".png").exists()
    found, true = (scanner_place(one, ROBOT).pose for one in ("bench", str(config_dir() / "nodes/scanner_pose.yaml")))
    corners = np.array([[x, y, 0.0] for x in (-0.16, 0.16) for y in (-0.16, 0.16)])
    assert np.abs(found.apply(true.apply_inverse(corners)) - corners).max() < 0.0015

    target = random_target(ROBOT, seed=3)
    write_ply(tmp_path / "target.ply", target, "mm")
    words = "reach", tmp_path / "target.ply", "--unit", "mm", "--mode", "plan-move-and-verify", "--json", "-"
    reached = json.loads(run(*words).stdout)
    measured = MM_PER_M * reached["measured"]["mean_error"]
    at_rest = resting_errors(ROBOT, target).mean * MM_PER_M
    assert measured < 0.25 * at_rest, (measured, at_rest)  # the simulation alone plans: what is left is the gap
    run("release")


def test_a_person_scans_frame_by_frame(stack, data):
    """The robot moves at Enter only, is held for the scan, and is let go of after it."""
    keyboard, terminal = os.openpty()
    output = data / "by_hand.zarr"
    words = ["--attach", "--by-hand", "--frames", "2", "--output", str(output)]
    process = subprocess.Popen(
        [sys.executable, "-m", "softform_core.cli.main", "collect", *words],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = ""

    def heard(words):
        nonlocal said
        while words not in said:
            line = process.stderr.readline()
            assert line, said
            said += line

    try:
        heard("frame 0 of 2: the robot is let go of. Enter moves it")
        time.sleep(2.0)
        assert not output.exists(), "nothing moves before Enter"
        os.write(keyboard, b"\n")
        heard("frame 0 is held: scan it now. It vents with the scan, or after 560 s.")
        heard("frame 1 of 2: the robot is let go of")
        assert len(open_frames(output, ROBOT).captured) == 1
        os.write(keyboard, b"\n")
        summary, rest = process.communicate(timeout=90)
        assert process.returncode == 0 and "2 of 2 frames captured" in summary, said + rest
    finally:
        process.kill()
        os.close(keyboard)
        os.close(terminal)
    assert "--by-hand asks a person" in run("collect", "--attach", "--by-hand", code=2).stderr
