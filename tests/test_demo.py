"""The main job as a person starts it: a command, a report, a bag, one JSON object."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import trimesh
from click.testing import CliRunner
from rosbags.highlevel import AnyReader

from softform_core.cli.main import main
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.units import MM_PER_M
from softform_system_tests.fault_injection.stack_watch import wait_for

KEYS = [
    "target", "predicted_mean_mm", "predicted_max_mm", "measured_mean_mm", "measured_max_mm", "rest_mean_mm", "ik_ms",
    "ik_iterations", "report", "bag", "sim_to_real", "measured_without_sim_to_real_mean_mm",
    "measured_open_loop_mean_mm", "measured_closed_loop_mean_mm", "best_fit_mean_mm", "rounds", "round_mean_mm",
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


def measured_above(figures: dict, best_fit: float) -> tuple[float, float, float]:
    ways = ("without_sim_to_real", "open_loop", "closed_loop")
    without, open_loop, closed_loop = (figures[f"measured_{way}_mean_mm"] - best_fit for way in ways)
    return without, open_loop, closed_loop


def test_a_file_in_millimetres_becomes_the_robots_shape(tmp_path):
    landscape = dem_target(load_robot("membrane"))
    target = tmp_path / "landscape.ply"
    trimesh.Trimesh(landscape.points * MM_PER_M, landscape.faces).export(target)
    process = demo(tmp_path, "--target", str(target), "--unit", "mm", "--json", "-")
    output, progress = process.communicate(timeout=200)
    assert process.returncode == 0, progress
    figures = json.loads(output)
    assert list(figures) == KEYS
    assert figures["sim_to_real"] == "rig_default"
    assert figures["measured_mean_mm"] < figures["rest_mean_mm"]
    assert figures["predicted_mean_mm"] <= figures["predicted_max_mm"]
    assert figures["measured_mean_mm"] == figures["measured_closed_loop_mean_mm"] == min(figures["round_mean_mm"])
    assert len(figures["round_mean_mm"]) == figures["rounds"] + 1
    # The land is finer than the chambers: what is left above the best fit is what a better plan can correct.
    without, open_loop, closed_loop = measured_above(figures, figures["best_fit_mean_mm"])
    assert open_loop <= 0.35 * without and closed_loop <= 0.2 * without
    assert figures["ik_iterations"] >= 2
    assert Path(figures["report"]).read_bytes().startswith(b"\x89PNG")
    assert not processes_of(tmp_path)
    with AnyReader([Path(figures["bag"])]) as bag:
        counts = {c.topic: c.msgcount for c in bag.connections}
    for topic in ("actuator_command", "actuator_state", "captured_cloud", "predicted_surface", "driver_state"):
        assert counts.get(f"/softform/{topic}", 0) > 0, counts


def test_what_was_learned_and_what_is_scanned_close_the_gap(tmp_path):
    process = demo(tmp_path, "--target", "random", "--seed", "4", "--json", "-")
    output, progress = process.communicate(timeout=200)
    assert process.returncode == 0, progress
    figures = json.loads(output)
    without, open_loop, closed_loop = measured_above(figures, 0.0)
    assert without > 2.5 and figures["rest_mean_mm"] > 5.0
    assert open_loop <= 0.35 * without and closed_loop <= 0.2 * without


def test_interrupted_demos_leave_no_process(tmp_path):
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    roots = [tmp_path / number.name for number in numbers]
    demos = [demo(root) for root in roots]
    for process in demos:  # a stack of other tests, which keeps its deadlines, goes first
        os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    seconds = np.random.default_rng().uniform(1.5, 20.0, len(numbers))
    wait_for(lambda: all(processes_of(root) for root in roots), 90.0)
    begun = time.monotonic()
    for process, number, moment in sorted(zip(demos, numbers, seconds, strict=True), key=lambda one: one[2]):
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        process.send_signal(number)
    for process in demos:
        process.communicate(timeout=60)
    wait_for(lambda: not any(processes_of(root) for root in roots), 20.0)
    left = [" ".join(process.cmdline()) for root in roots for process in processes_of(root)]
    assert not left, f"after {seconds.round(1)} s"


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
def test_a_bad_request_is_refused_before_anything_starts(tmp_path, arguments, said):
    good = dem_target(load_robot("membrane"))
    trimesh.PointCloud(good.points * MM_PER_M).export(tmp_path / "good.ply")
    trimesh.PointCloud(good.points[:3] * MM_PER_M).export(tmp_path / "three.ply")
    content = (tmp_path / "good.ply").read_bytes()
    (tmp_path / "truncated.ply").write_bytes(content[: len(content) // 2])
    words = ["demo", "--headless", *(a.format(folder=tmp_path) for a in arguments)]
    refused = CliRunner().invoke(main, words, env={"SOFTFORM_RUNS": str(tmp_path / "runs")})
    assert refused.exit_code not in (0, None)
    assert refused.exception is None or isinstance(refused.exception, SystemExit), refused.exception
    assert re.search(said, refused.output), refused.output
    assert not (tmp_path / "runs").exists()
