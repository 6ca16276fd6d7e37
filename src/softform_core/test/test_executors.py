"""Where work is done: here, in processes, or on a Ray cluster, for which a stand-in of Ray's module serves here."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import psutil
import pytest
from click.testing import CliRunner

from softform_core import ray_executor
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.executors import Executor, InProcess, ProcessPool, make_executor
from softform_core.paths import drawn_seed
from softform_core.ray_executor import INSTALL, RayExecutor

ITEMS = list(range(9))


# Processes find functions of the library and of Python, but not those of a test.
powers: Callable[[], Callable[[int], int]] = partial(partial, pow, 3)
seeds: Callable[[], Callable[[str], int | None]] = partial(partial, drawn_seed)
ends: Callable[[], Callable[[int], object]] = partial(partial, os._exit)


naps: Callable[[], Callable[[float], None]] = partial(partial, time.sleep)


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__("Traceback of the worker …")
        self.cause = cause


@dataclass
class RayStandIn:
    """What the executor calls of Ray: tasks are done when they are waited for, the last first, one worker's."""

    cores: int = 2
    refuses: Exception | None = None
    loses: bool = False
    running: int = 0
    most: int = 0
    calls: Counter = field(default_factory=Counter)
    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def init(self, address: str, **settings: object) -> None:
        self.calls[f"init {address}"] += 1
        if self.refuses is not None:
            raise self.refuses

    def shutdown(self) -> None:
        self.calls["shutdown"] += 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.cores)}

    def put(self, value: object) -> SimpleNamespace:
        return SimpleNamespace(value=value, hex=lambda: str(id(value)))

    def remote(self, function: Callable) -> SimpleNamespace:
        def submit(*arguments: object) -> SimpleNamespace:
            self.running += 1
            self.most = max(self.most, self.running)
            return SimpleNamespace(work=partial(function, *arguments))

        return SimpleNamespace(options=lambda max_retries: SimpleNamespace(remote=submit))

    def wait(self, tasks: list, num_returns: int, timeout: float | None = None) -> tuple[list, list]:
        return ([], tasks) if timeout == 0 else (tasks[-1:], tasks[:-1])

    def get(self, task: SimpleNamespace) -> object:
        if hasattr(task, "value"):
            return task.value
        self.running -= 1
        if self.loses:
            raise RayError("The node with the task died.\nMore about it.")
        try:
            return task.work()
        except Exception as error:
            raise RayTaskError(error) from error


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> RayStandIn:
    stand_in = RayStandIn()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def test_every_executor_does_every_item_once(ray: RayStandIn) -> None:
    executors: list[Executor] = [InProcess(), ProcessPool(2), RayExecutor("auto")]
    for executor in executors:
        assert sorted(executor.run(powers, ITEMS)) == [3**item for item in ITEMS]
        assert list(executor.run(powers, [])) == []
    assert list(InProcess().run(powers, ITEMS)) == [3**item for item in ITEMS]
    assert list(RayExecutor("auto").run(powers, ITEMS)) != [3**item for item in ITEMS]


def test_a_cluster_is_given_twice_as_many_tasks_as_it_has_cores_and_is_left_at_the_end(ray: RayStandIn) -> None:
    prepared: list[str] = []

    def make() -> Callable[[int], int]:
        prepared.append("a worker")
        return powers()

    results = RayExecutor("auto").run(make, ITEMS)
    next(results)
    assert ray.most == 4
    ray.cores = 3  # a node joins
    assert len(list(results)) == len(ITEMS) - 1
    assert ray.most == 6 and ray.running == 0
    assert prepared == ["a worker"]
    assert ray.calls == {"init auto": 1, "shutdown": 1}


def test_a_cluster_is_left_where_the_caller_gives_up(ray: RayStandIn) -> None:
    results = RayExecutor("auto").run(powers, ITEMS)
    next(results)
    results.close()
    assert ray.calls["shutdown"] == 1


@pytest.mark.parametrize(
    "where", [InProcess(), ProcessPool(2), RayExecutor("auto")], ids=lambda each: type(each).__name__
)
def test_an_error_in_a_worker_reaches_the_caller_as_it_is(ray: RayStandIn, where: Executor) -> None:
    with pytest.raises(SoftformError, match="'drawn:x' has no seed. Give a number"):
        list(where.run(seeds, ["drawn:1", "drawn:x", "drawn:2"]))


def test_a_lost_worker_says_what_is_kept(ray: RayStandIn) -> None:
    with pytest.raises(SoftformError, match=r"process died.* is kept\. Run the same command again"):
        list(ProcessPool(2).run(ends, ITEMS))
    ray.loses = True
    with pytest.raises(SoftformError, match=r"lost 11 times, at last so: The node with the task died\. .* is kept\."):
        list(RayExecutor("auto").run(powers, ITEMS))
    assert ray.calls["shutdown"] == 1


def test_ctrl_c_does_not_wait_for_what_processes_are_at() -> None:
    results = ProcessPool(2).run(naps, [0.01, 1000.0, 1000.0])
    next(results)
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt)
    assert not [child for child in psutil.Process().children() if any("spawn_main" in part for part in child.cmdline())]


VERSIONS = "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.10.2\nThis process ..."


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (RuntimeError(VERSIONS), r"is of another version: .*Ray: 2\.9\.0 Python: 3\.10\.2.* Install the same Ray"),
        (ConnectionError("Could not find any running Ray instance."), r"cannot be used: Could not find .* ray start"),
        (ValueError("Did you mean to start a cluster?"), r"cannot be used: Did you mean"),
    ],
    ids=["version", "absent", "wrong"],
)
def test_a_cluster_that_cannot_be_used_says_why(ray: RayStandIn, refusal: Exception, said: str) -> None:
    ray.refuses = refusal
    with pytest.raises(SoftformError, match=said):
        list(RayExecutor("auto").run(powers, ITEMS))


@pytest.mark.parametrize("address", ["127.0.0.1:9", "127.0.0.1:x"])
def test_an_address_without_a_cluster_is_rejected_at_once(ray: RayStandIn, address: str) -> None:
    with pytest.raises(SoftformError, match=f"The Ray cluster {address} cannot be used"):
        list(RayExecutor(address).run(powers, ITEMS))
    assert ray.calls == {"shutdown": 1}


def test_nodes_of_another_revision_are_rejected(ray: RayStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    revisions = iter(["abc", "def"])
    monkeypatch.setattr(ray_executor, "git_revision", lambda: next(revisions))
    with pytest.raises(SoftformError, match="runs Softform def, this machine abc"):
        list(RayExecutor("auto").run(powers, ITEMS))


def without_softform() -> Callable[[int], int]:
    raise ModuleNotFoundError("No module named 'softform_core'")


def test_nodes_without_softform_say_what_to_prepare(ray: RayStandIn) -> None:
    with pytest.raises(SoftformError, match=r"No module named 'softform_core' Prepare the same checkout"):
        list(RayExecutor("auto").run(without_softform, ITEMS))


def test_without_ray_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SoftformError) as caught:
        list(RayExecutor("local").run(powers, ITEMS))
    assert caught.value.next_step == f"Install it: {INSTALL}"
    assert list(make_executor(1).run(powers, [2])) == [9]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jobs": 0}, "0 jobs cannot work"),
        ({"jobs": 2, "cluster": "auto"}, "--jobs and --cluster exclude each other"),
        ({"cluster": "ray://host:10001"}, "address of a Ray client"),
    ],
    ids=["none", "both", "client"],
)
def test_where_nothing_can_work_is_rejected(options: dict, said: str) -> None:
    with pytest.raises(SoftformError, match=said):
        make_executor(**options)


@pytest.mark.parametrize(
    "command", [["simulate"], ["train", "s2r"], ["bench", "sim2real", "--draws", "2"]], ids=lambda words: words[0]
)
def test_commands_take_a_cluster_or_processes(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--jobs", "2", "--cluster", "auto"])
    assert result.exit_code == 2
    assert "--jobs and --cluster exclude each other" in result.output
