"""Data sets: which actuations, the store, and runs that are killed, locked out or out of disk."""

import hashlib
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml
import zarr
from click.testing import CliRunner

from softform_core.cli.simulate import simulate
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampled_body import Solved
from softform_core.simulation.sampling import corner_actuations, inflations, sample_actuations
from softform_core.simulation.store import SampleStatus, create_simulation, open_simulation

COMMAND = [sys.executable, "-c", "from softform_core.cli.simulate import simulate; simulate()"]


def _robot_file(folder: Path, cells: int = 6, **membrane: object) -> Path:
    """A membrane of 2 x 2 chambers on a coarse mesh: 16 corners, milliseconds a shape."""
    description = yaml.safe_load(robot_file("membrane").read_text())
    description["name"] = "small"
    description["body"] |= {"rows": 2, "columns": 2, "cells": cells, **membrane}
    description["devices"][0]["channels"] = [0, 1, 2, 3]
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(description))
    return path


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    return load_robot(_robot_file(tmp_path))


def test_samples_begin_with_all_corners_and_lean_towards_inflation():
    low, high = np.zeros(9), np.full(9, 5000.0)
    actuations = sample_actuations(low, high, 1000, seed=0)
    assert actuations.shape == (1000, 9)
    assert np.array_equal(actuations[:512], corner_actuations(low, high))
    assert len(np.unique(actuations, axis=0)) == 1000
    inner = actuations[512:]
    assert (inner > low).all() and (inner < high).all()
    assert 2650.0 < inner.mean() < 2950.0
    assert np.abs(inner.mean(axis=0) - inner.mean()).max() < 250.0


def test_more_samples_begin_with_fewer_and_seeds_differ():
    low, high = np.zeros(4), np.full(4, 5000.0)
    few, many = (sample_actuations(low, high, n, seed=1) for n in (40, 3000))
    assert np.array_equal(few, many[:40])
    assert not np.array_equal(few, sample_actuations(low, high, 40, seed=2))
    with pytest.raises(SoftformError):
        sample_actuations(low, high, 0, seed=1)


def test_where_corners_outnumber_the_samples_half_of_the_samples_are_corners():
    low, high = np.full(15, -2000.0), np.full(15, 5000.0)
    actuations = sample_actuations(low, high, 1000, seed=0)
    corner = ((actuations == low) | (actuations == high)).all(axis=1)
    assert corner[:500].all() and not corner[500:].any()
    assert len(np.unique(actuations, axis=0)) == 1000
    # Inflation is the distance from rest, which here is not the minimum: large negative values are drawn, too.
    inner = actuations[500:]
    assert (np.abs(inner) / 5000.0).mean() > (np.abs(sample_evenly(low, high)) / 5000.0).mean() + 0.02
    assert (inner < -1500.0).any(axis=1).mean() > 0.3


def sample_evenly(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, (10000, len(low)))


def test_the_command_says_that_corners_are_left_out(tmp_path: Path):
    path = str(tmp_path / "few.zarr")
    shown = CliRunner().invoke(simulate, ["--robot", str(_robot_file(tmp_path)), "--samples", "4", "--output", path])
    assert shown.exit_code == 0
    assert "2 of the 16 combinations" in shown.output


def test_the_samples_of_the_shipped_model_are_what_they_were():
    """Stores and models of 1000 samples of nine chambers stay valid."""
    digest = hashlib.sha256(sample_actuations(np.zeros(9), np.full(9, 5000.0), 1000, seed=0).tobytes()).hexdigest()
    assert digest == "12a550de22e7efed2c6cc51e1f4af54793bde8107a49aaea13c44e155803ffef"


def test_generated_store_holds_shapes_and_provenance(robot: Robot, tmp_path: Path):
    path = tmp_path / "simulation.zarr"
    generate(robot, inflations(robot, 20, 5), path, jobs=1, progress=False)
    store = open_simulation(path, robot)
    assert (store.status == SampleStatus.CONVERGED).all() and store.failures == {}
    actuation, vertices = store.converged()
    assert actuation.shape == (20, 4) and vertices.shape == (20, 49, 3)
    assert store.rest_vertices.shape == (49, 3) and store.faces.shape == (72, 3)
    flat = actuation.max(axis=1) == 0.0
    assert np.array_equal(vertices[flat][0], store.rest_vertices)
    assert (vertices[~flat, :, 2].max(axis=1) > 0.01).all()
    assert (store.iterations[~flat] > 0).all() and (store.solve_seconds[~flat] > 0.0).all()
    attributes = store.attributes
    assert attributes["robot_fingerprint"] == robot.fingerprint()
    assert (attributes["seed"], attributes["n_corners"], attributes["robot"]) == (5, 16, "small")
    assert {"command", "git_revision", "created"} <= set(attributes)

    grown = generate(robot, inflations(robot, 30, 5), path, jobs=1, progress=False)
    assert len(grown) == 30 and not len(grown.pending)
    assert np.array_equal(grown.converged()[1][:20], vertices)


@pytest.mark.long
def test_processes_find_what_one_process_finds(robot: Robot, tmp_path: Path):
    alone, shared = (
        generate(robot, inflations(robot, 24), tmp_path / f"{jobs}.zarr", jobs=jobs, progress=False) for jobs in (1, 2)
    )
    assert np.allclose(alone.converged()[1], shared.converged()[1], atol=1e-12)


def test_samples_without_equilibrium_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("softform_core.simulation.newton.SMALLEST_LOAD_STEP", 0.1)  # told roughly, and soon
    soft = {"law": "neo_hookean", "coefficients": [2.0e4]}
    robot = load_robot(_robot_file(tmp_path, material=soft, wall_stiffness=0.0))
    path = tmp_path / "simulation.zarr"
    store = generate(robot, inflations(robot, 16), path, jobs=1, progress=False)
    failed = np.flatnonzero(store.status == SampleStatus.FAILED)
    assert 0 < len(failed) < 16
    assert sorted(store.failures) == failed.tolist()
    assert all("no equilibrium" in reason for reason in store.failures.values())
    shown = CliRunner().invoke(simulate, ["--robot", str(tmp_path / "small.yaml"), "--samples", "16", "--output", path])
    assert shown.exit_code == 0
    assert f"sample {failed[0]} failed" in shown.output
    assert f"{16 - len(failed)} of 16 shapes converged" in shown.output
    zarr.open_group(path, mode="r+")["status"][:] = SampleStatus.FAILED
    shown = CliRunner().invoke(simulate, ["--robot", str(tmp_path / "small.yaml"), "--samples", "16", "--output", path])
    assert isinstance(shown.exception, SoftformError) and "nothing to learn from" in str(shown.exception)
    assert "Learn them" not in shown.output


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path):
    description, path = _robot_file(tmp_path), tmp_path / "simulation.zarr"
    command = [*COMMAND, "--robot", description, "--samples", "150", "--output", path, "--jobs", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120.0
        while not path.exists() or len(open_simulation(path).pending) > 135:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=20.0)
    assert not alive

    robot = load_robot(description)
    cut = open_simulation(path, robot)
    done = np.flatnonzero(cut.status == SampleStatus.CONVERGED)
    assert 15 <= len(done) < 150
    chunks = {sample: (path / "vertices" / "c" / str(sample) / "0" / "0").stat().st_mtime_ns for sample in done}
    kept = cut.converged()[1]

    subprocess.run(command, check=True, capture_output=True)
    whole = open_simulation(path, robot)
    assert (whole.status == SampleStatus.CONVERGED).all()
    assert chunks == {sample: (path / "vertices" / "c" / str(sample) / "0" / "0").stat().st_mtime_ns for sample in done}
    assert np.array_equal(whole.converged()[1][done], kept)
    assert np.array_equal(whole.actuation, sample_actuations(robot.actuation_min, robot.actuation_max, 150, 0))


@pytest.mark.long
def test_a_full_disk_says_so_and_loses_nothing(tmp_path: Path):
    """The limit on file sizes stands in for the end of the disk: metadata fit below it, a shape's vertices do not."""
    description, path = _robot_file(tmp_path, cells=32), tmp_path / "simulation.zarr"
    robot = load_robot(description)
    command = [*COMMAND[:2], COMMAND[2].replace("simulate()", "simulate(standalone_mode=False)")]
    command += ["--robot", description, "--samples", "18", "--output", path, "--jobs", "1"]
    generate(robot, inflations(robot, 16), path, jobs=1, progress=False)
    before = open_simulation(path, robot).converged()[1]

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    stopped = subprocess.run(command, capture_output=True, text=True, preexec_fn=no_large_files)
    assert stopped.returncode != 0
    assert "Writing the simulation" in stopped.stderr and "run the same command again" in stopped.stderr
    cut = open_simulation(path, robot)
    assert np.array_equal(cut.converged()[1], before) and len(cut.pending) == 2

    subprocess.run(command, check=True, capture_output=True)
    assert (open_simulation(path, robot).status == SampleStatus.CONVERGED).all()


def test_two_runs_do_not_write_one_store(robot: Robot, tmp_path: Path):
    import fcntl

    with (tmp_path / ".simulation.zarr.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SoftformError, match="Another process"):
            generate(robot, inflations(robot, 16), tmp_path / "simulation.zarr", jobs=1, progress=False)


def test_other_stores_are_rejected(robot: Robot, tmp_path: Path):
    path = tmp_path / "simulation.zarr"
    with pytest.raises(SoftformError, match="no simulation"):
        open_simulation(path)
    (tmp_path / "text.zarr").write_text("not a store")
    (tmp_path / "empty.zarr").mkdir()
    for wrong in ("text.zarr", "empty.zarr"):
        with pytest.raises(SoftformError, match="not a Zarr group"):
            open_simulation(tmp_path / wrong)

    generate(robot, inflations(robot, 16), path, jobs=1, progress=False)
    with pytest.raises(SoftformError, match="made for robot 'small'"):
        open_simulation(path, load_robot("membrane"))
    with pytest.raises(SoftformError, match="seed 0, not 1"):
        generate(robot, inflations(robot, 16, 1), path, jobs=1, progress=False)

    group = zarr.open_group(path, mode="r+")
    group.attrs["schema_version"] = 2
    with pytest.raises(SoftformError, match="version 2"):
        open_simulation(path)
    group.attrs["schema_version"], group.attrs["schema"] = 1, "softform/captures"
    with pytest.raises(SoftformError, match="softform/captures"):
        open_simulation(path)
    group.attrs["schema"] = "softform/simulation"
    del group.attrs["git_revision"]
    with pytest.raises(SoftformError, match="lacks its git_revision"):
        open_simulation(path)
    group.attrs["git_revision"] = "0"
    group["status"].resize((3,))
    with pytest.raises(SoftformError, match="misshapen: status"):
        open_simulation(path)
    del group["faces"]
    with pytest.raises(SoftformError, match="misshapen: faces"):
        open_simulation(path)


def test_help_teaches():
    shown = CliRunner().invoke(simulate, ["--help"])
    assert shown.exit_code == 0
    for word in ("--samples", "--output", "--jobs", "--seed", "goes on where it stopped", "Examples"):
        assert word in shown.output


def test_a_sample_is_its_history_and_its_actuation(robot, tmp_path):
    """Three ways to one actuation are three samples; an unknown way is one of its own."""
    at, low, high = np.full((3, 4), 2000.0), np.zeros((1, 4)), np.full((1, 4), 4000.0)
    past = np.stack([low, high, np.full((1, 4), np.nan)])
    made = {"command": "a test", "git_revision": "none", "created": "now"}
    constants = {"rest_vertices": np.zeros((5, 3)), "faces": np.zeros((1, 3), dtype=np.int32)}
    outputs = {"vertices": (5, 3)}
    store = create_simulation(tmp_path / "a.zarr", robot, at, outputs, constants, 2, made, past)
    shapes = np.arange(45.0).reshape(3, 5, 3)
    store.write(np.arange(3), Solved({"vertices": shapes}, np.zeros(3, dtype=np.int64), [""] * 3), 0.0)
    more = np.stack([high, np.full((1, 4), 1000.0)])
    store.add(at[:2], more)  # the first is there already
    again = open_simulation(tmp_path / "a.zarr", robot)
    assert len(again) == 4 and again.pending.tolist() == [3]
    np.testing.assert_array_equal(again.past, np.concatenate([past, more[1:]]))
    np.testing.assert_array_equal(again.converged()[1], shapes)
    for wrong in (None, more[:, :, :2], np.concatenate([more, more], axis=1), np.full_like(more, np.inf)):
        with pytest.raises(SoftformError):
            again.add(at[:2], wrong)
    gap = np.concatenate([more, np.full_like(more, np.nan)], axis=1)
    with pytest.raises(SoftformError, match="Row 0"):
        create_simulation(tmp_path / "b.zarr", robot, at[:2], outputs, constants, 2, made, gap)
