"""The main job as a person starts it: a command, a report, a bag, one JSON object."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import psutil
import pytest
import trimesh
from click.testing import CliRunner
from rosbags.highlevel import AnyReader

from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.paths import launch_dir
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.units import MM_PER_M
from softform_launch.launch_file import load_launch_file
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_tools.demo import DemoRequest, choose_target

KEYS = [
    "target", "predicted_mean_mm", "predicted_max_mm", "measured_mean_mm", "measured_max_mm", "rest_mean_mm", "ik_ms",
    "ik_iterations", "report", "bag", "sim_to_real", "measured_without_sim_to_real_mean_mm",
    "measured_open_loop_mean_mm", "measured_closed_loop_mean_mm", "best_fit_mean_mm", "best_fit_agreement", "rounds",
    "round_mean_mm", "pose",
]  # fmt: skip


def demo(run_root: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "softform_core.cli.main", "demo", "--headless", *arguments],
        env={**os.environ, "SOFTFORM_RUNS": str(run_root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_of(run_root: Path) -> list[psutil.Process]:
    """Every process whose command line names this run's folder: each node is given it."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(run_root) in part for part in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def measured_errors(figures: dict) -> tuple[float, float, float]:
    ways = ("without_sim_to_real", "open_loop", "closed_loop")
    without, open_loop, closed_loop = (figures[f"measured_{way}_mean_mm"] for way in ways)
    return without, open_loop, closed_loop


def test_half_a_tube_is_rejected_before_anything_starts(tmp_path):
    half = trimesh.creation.cylinder(0.025, 0.26, cap=False, sections=64)
    half.update_faces(half.triangles_center[:, 0] > 0.0)
    half.export(tmp_path / "half.ply")
    request = DemoRequest(str(tmp_path / "half.ply"), "m", "manipulator", "default", seed=0)
    with pytest.raises(SoftformError, match="open"):
        choose_target(request, load_robot("manipulator"))


@pytest.mark.long
def test_a_file_in_millimetres_becomes_the_robots_shape(tmp_path):
    made = choose_target(DemoRequest("random", None, "membrane", "default", seed=4), load_robot("membrane"))
    target = tmp_path / "random.ply"
    trimesh.Trimesh(made.points * MM_PER_M, made.faces).export(target)
    process = demo(tmp_path, "--target", str(target), "--unit", "mm", "--json", "-")
    output, progress = process.communicate(timeout=200)
    assert process.returncode == 0, progress
    assert "start 4 of 4: " in progress
    figures = json.loads(output)
    assert list(figures) == KEYS
    assert figures["sim_to_real"] == "rig_default"
    assert figures["measured_mean_mm"] < figures["rest_mean_mm"]
    assert figures["predicted_mean_mm"] <= figures["predicted_max_mm"]
    assert figures["measured_mean_mm"] == figures["measured_closed_loop_mean_mm"] == min(figures["round_mean_mm"])
    assert len(figures["round_mean_mm"]) == figures["rounds"] + 1
    without, open_loop, closed_loop = measured_errors(figures)
    assert without > 2.5 and figures["rest_mean_mm"] > 5.0
    assert open_loop <= 0.35 * without and closed_loop <= 0.2 * without
    assert figures["ik_iterations"] >= 2
    assert Path(figures["report"]).read_bytes().startswith(b"\x89PNG")
    assert not processes_of(tmp_path)
    with AnyReader([Path(figures["bag"])]) as bag:
        counts = {c.topic: c.msgcount for c in bag.connections}
    for topic in ("actuator_command", "actuator_state", "captured_cloud", "predicted_surface", "driver_state"):
        assert counts.get(f"/softform/{topic}", 0) > 0, counts


def test_an_interrupted_demo_leaves_no_process(tmp_path):
    random = np.random.default_rng()
    number = random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    seconds = random.uniform(1.5, 14.0)
    process = demo(tmp_path)
    wait_for(lambda: processes_of(tmp_path), 90.0)
    time.sleep(seconds)
    process.send_signal(number)
    process.communicate(timeout=60)
    wait_for(lambda: not processes_of(tmp_path), 20.0)
    left = [" ".join(process.cmdline()) for process in processes_of(tmp_path)]
    assert not left, f"{signal.Signals(number).name} after {seconds:.1f} s"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "{folder}/absent.ply", "--unit", "mm"], r"no file .*absent\.ply"),
        (["--target", "landscape"], "no file landscape.*dem"),
        (["--json", "{folder}/absent/figures.json"], "absent.*does not exist"),
        (["--target", "{folder}/good.ply"], "--unit"),
        (["--target", "{folder}/good.ply", "--unit", "m"], "millimet|mm"),
        (["--target", "{folder}/truncated.ply", "--unit", "mm"], "truncated|ends|shorter"),
        (["--target", "{folder}/three.ply", "--unit", "mm"], "3 points|at least"),
        (["--reality", "nowhere"], "nowhere.*default"),
        (["--sim-to-real", "{folder}/untrained"], "untrained"),
        (["--robot", "nobody"], "nobody.*membrane"),
    ],
)
def test_a_bad_request_is_rejected_before_anything_starts(tmp_path, arguments, said):
    good = dem_target(load_robot("membrane"))
    trimesh.PointCloud(good.points * MM_PER_M).export(tmp_path / "good.ply")
    trimesh.PointCloud(good.points[:3] * MM_PER_M).export(tmp_path / "three.ply")
    content = (tmp_path / "good.ply").read_bytes()
    (tmp_path / "truncated.ply").write_bytes(content[: len(content) // 2])
    words = ["demo", "--headless", *(a.format(folder=tmp_path) for a in arguments)]
    rejected = CliRunner().invoke(main, words, env={"SOFTFORM_RUNS": str(tmp_path / "runs")})
    assert rejected.exit_code not in (0, None)
    assert rejected.exception is None or isinstance(rejected.exception, SystemExit), rejected.exception
    assert re.search(said, rejected.output), rejected.output
    assert not (tmp_path / "runs").exists()


class _StackToStart(Exception):  # noqa: N818 - not an error
    """Raised in place of a start."""


def test_the_membrane_of_the_descriptions_page_gets_as_far_as_its_stack(tmp_path, monkeypatch):
    """Without a model of it: its reality, its target and what the stack is started with."""
    page = Path(__file__).parents[1] / "docs" / "robots" / "description.md"
    example = re.search(r"```yaml\n(name: membrane_2x3\n.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[1]
    robot = tmp_path / "mine.yaml"
    robot.write_text(example)
    rejected = CliRunner().invoke(main, ["demo", "--headless", "--robot", str(robot)])
    assert re.search("no .*model.*train fk", rejected.output, re.DOTALL), rejected.output

    def start(name, arguments, output):
        assert arguments["robot"] == str(robot) and arguments["reality"] == "default"
        raise _StackToStart(load_launch_file(launch_dir() / f"{name}.launch.xml", arguments))

    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("softform_tools.demo.FORWARD_KINEMATICS", Mock())
    monkeypatch.setattr("softform_tools.demo.enter_domain_of_its_own", lambda: None)
    monkeypatch.setattr("softform_tools.demo.LaunchedStack", start)

    def started(*words):
        with pytest.raises(_StackToStart) as at:
            CliRunner().invoke(main, ["demo", *words, "--robot", str(robot)], catch_exceptions=False)
        (nodes,) = at.value.args
        return [node.shell_line() for node in nodes]

    lines = started("--headless")
    for name in ("rig", "actuation", "scanner", "shape_predictor", "inverse_kinematics"):
        assert any(f"__node:={name} " in line and str(robot) in line for line in lines), (name, lines)
    for name in ("CI", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    assert any("__node:=console " in line and "open_page:=true" in line for line in started())
    assert not [line for line in (*lines, *started("--headless")) if "console" in line]
    monkeypatch.delenv("DISPLAY")
    assert not [line for line in started() if "console" in line]
