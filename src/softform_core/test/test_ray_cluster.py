"""A real Ray cluster of two nodes on this machine: nodes and workers that die lose nothing, versions must agree."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.ray_executor import INSTALL, RayExecutor
from softform_core.robots import Robot, load_robot
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.simulation.store import SampleStatus, SimulationStore

ray = pytest.importorskip("ray", reason=f"Ray is an extra: {INSTALL}")

pytestmark = pytest.mark.timeout(240)

LITTLE = {"num_cpus": 1, "object_store_memory": 80 * 1024 * 1024}
SAMPLES = 24


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={**LITTLE, "include_dashboard": False})
    try:
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


def small(folder: Path) -> Robot:
    """A membrane of 2 x 2 chambers on a coarse mesh."""
    description = yaml.safe_load(robot_file("membrane").read_text())
    description["name"] = "small"
    description["body"] |= {"rows": 2, "columns": 2, "cells": 8}
    description["devices"][0]["channels"] = [0, 1, 2, 3]
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(description))
    return load_robot(path)


class Begun(NamedTuple):
    """A task that a worker noted."""

    item: int
    node: str
    process: int
    at: float


def recorder(log: Path) -> Callable[[int], tuple[int, np.ndarray]]:
    return partial(record, log)


def record(log: Path, item: int) -> tuple[int, np.ndarray]:
    """Half a second's work with a result that lies in the node's object store, noted when it begins."""
    with log.open("a") as file:
        file.write(f"{item} {ray.get_runtime_context().get_node_id()} {os.getpid()} {time.time()}\n")
    time.sleep(0.5)
    return item, np.full(40_000, float(item))


def begun(log: Path) -> list[Begun]:
    words = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [Begun(int(item), node, int(process), float(at)) for item, node, process, at in words]


@pytest.mark.long
def test_what_dies_with_its_node_or_process_is_done_again(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, items, found = tmp_path / "log", list(range(20)), {}
    node = cluster.add_node(**LITTLE)
    results = RayExecutor(cluster.address).run(partial(recorder, log), items)
    working = threading.Thread(target=lambda: found.update(results), daemon=True)
    working.start()

    def just_begun(where: str) -> Begun:
        while True:
            of_node = [each for each in begun(log) if each.node == where]
            if of_node and time.time() - of_node[-1].at < 0.2:
                return of_node[-1]
            assert working.is_alive(), begun(log)
            time.sleep(0.01)

    on_node = just_begun(node.node_id)
    cluster.remove_node(node, allow_graceful=False)
    in_process = just_begun(cluster.head_node.node_id)
    os.kill(in_process.process, signal.SIGKILL)
    working.join()
    assert sorted(found) == items
    assert all((array == item).all() for item, array in found.items())
    for lost in (on_node, in_process):
        assert [each.item for each in begun(log) if each.process != lost.process].count(lost.item) == 1
    assert not capsys.readouterr().out, "what Ray says would spoil a command's JSON"


def test_a_node_killed_midway_leaves_the_store_of_one_process(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = small(tmp_path)
    alone = generate(robot, inflations(robot, SAMPLES), tmp_path / "alone.zarr", jobs=1, progress=False)
    node, writes, write = cluster.add_node(**LITTLE), [], SimulationStore.write

    def write_and_kill(store: SimulationStore, *what: Any) -> None:
        write(store, *what)
        writes.append(what[0])
        if len(writes) == SAMPLES // 4:
            cluster.remove_node(node, allow_graceful=False)

    monkeypatch.setattr(SimulationStore, "write", write_and_kill)
    path = tmp_path / "ray.zarr"
    shared = generate(robot, inflations(robot, SAMPLES), path, cluster=cluster.address, progress=False)
    assert sorted(np.concatenate(writes)) == list(range(SAMPLES))
    assert (shared.status == SampleStatus.CONVERGED).all()
    assert np.array_equal(shared.actuation, alone.actuation)
    assert np.array_equal(shared.iterations, alone.iterations)
    assert np.allclose(shared.converged()[1], alone.converged()[1], rtol=0.0, atol=1e-12)


def test_a_cluster_of_another_version_is_rejected(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "__version__", "1.0.0")
    with pytest.raises(SoftformError, match=r"is of another version: .*1\.0\.0"):
        list(RayExecutor(cluster.address).run(partial(recorder, Path()), [1]))
