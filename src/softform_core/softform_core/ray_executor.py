"""Work on a Ray cluster. Ray is an extra: it is loaded where a cluster is asked for, and nowhere else.

Ray runs a task again whose process or node died, and one whose result was lost with a node before it was fetched;
what is fetched is the caller's to keep. At most twice as many tasks as the cluster has cores are on their way, so that
millions of items cost no memory, and nodes that join or leave change the number.
"""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any

from softform_core.errors import SoftformError
from softform_core.provenance import git_revision
from softform_core.workers import ONE_THREAD, Item, Result, default_jobs

LOCAL = "local"
"""Address of a cluster that is started on this machine for one command, a worker for each core."""

INSTALL = ".venv/bin/pip install -r requirements-ray.txt"

_OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""Size of a local cluster's object store, bytes: it holds a few results at a time, of a megabyte at most."""

_REACH_SECONDS = 5.0

_RETRIES = 10
"""Most restarts of a task that died with its process or node: one that kills each must end somewhere."""


class RayExecutor:
    """The cores of a Ray cluster.

    Args:
        address: `HOST:PORT` of a cluster that this machine is a node of, `auto` for the one that runs here, or `LOCAL`.

    Raises:
        SoftformError: If it is the address of a Ray client.
    """

    def __init__(self, address: str) -> None:
        """Connect to nothing yet; `run` does, and leaves the cluster at its end."""
        if address.startswith("ray://"):
            raise SoftformError(
                f"{address} is the address of a Ray client.",
                "Make this machine a node: ray start --address HOST:6379 --num-cpus 0, then give --cluster auto.",
            )
        self._address = address

    def run(self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
        """See `Executor`.

        Raises:
            SoftformError: If Ray is not installed; if the cluster cannot be reached, or is of another version of Ray,
                Python or Softform; if a task was lost too often.
        """
        if not items:
            return
        ray = _load_ray()
        # Ray tells of lost nodes on standard output, which may be a command's JSON.
        with redirect_stdout(sys.stderr):
            try:
                _connect(ray, self._address)
                yield from _run(ray, make, items)
            finally:
                ray.shutdown()


def _load_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise SoftformError(f"Ray cannot be imported: {error}.", f"Install it: {INSTALL}") from error
    return ray


def _connect(ray: Any, address: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    begun_here = {
        "num_cpus": default_jobs(), "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False,
    } if address == LOCAL else {}  # fmt: skip
    try:
        if ":" in address:
            # Ray itself tries for minutes.
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()
        ray.init(
            address, runtime_env={"env_vars": ONE_THREAD}, log_to_driver=False, logging_level="error", **begun_here
        )
    except (RuntimeError, ValueError, OSError) as error:
        said = " ".join(str(error).split())
        if "Version mismatch" in said:
            raise SoftformError(
                f"The Ray cluster {address} is of another version: {said}",
                f"Install the same Ray and Python on all nodes, and start the cluster anew. Ray here: {INSTALL}",
            ) from error
        raise SoftformError(
            f"The Ray cluster {address} cannot be used: {said}",
            "Start it, or join it from this machine: ray start --address HOST:6379. Without one: --cluster local",
        ) from error


def _run(ray: Any, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
    work = ray.remote(_work_on).options(max_retries=_RETRIES)
    # In a list, so that a worker fetches it once and not for each task.
    preparation, revision = [ray.put(make)], git_revision()
    waiting, left = iter(items), len(items)
    running: list[Any] = []
    while left:
        room = 2 * max(1, int(ray.cluster_resources().get("CPU", 0))) - len(running)
        running += [work.remote(preparation, revision, item) for _, item in zip(range(room), waiting, strict=False)]
        ready, running = ray.wait(running, num_returns=1)
        if running:
            more, running = ray.wait(running, num_returns=len(running), timeout=0)
            ready += more
        left -= len(ready)
        for task in ready:
            yield _result(ray, task)


def _result(ray: Any, task: Any) -> Any:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ImportError) or "failed to import" in str(cause):
            raise SoftformError(
                f"A node of the cluster cannot load Softform: {str(cause).strip().splitlines()[-1]}",
                "Prepare the same checkout on every node (./softform build) and start Ray in its environment "
                "(source .venv/softform_env.sh).",
            ) from error
        raise cause from error
    except ray.exceptions.RayError as error:
        raise SoftformError(
            f"A task was lost {_RETRIES + 1} times, at last so: {str(error).strip().splitlines()[0]}",
            "What was finished is kept. Look at the nodes and their memory (ray status), then run the same command "
            "again.",
        ) from error


_prepared: dict[str, Callable[[Any], Any]] = {}
"""Objects that `make` prepared in this worker, by the names of those that hold them."""


def _work_on(preparation: list[Any], revision: str, item: Any) -> Any:
    """Compute the result of one item, in a worker."""
    name = preparation[0].hex()
    if name not in _prepared:
        if (own := git_revision()) != revision:
            raise SoftformError(
                f"A node of the cluster runs Softform {own}, this machine {revision}.",
                "Bring all nodes to the same revision: their results would differ.",
            )
        _prepared.clear()
        _prepared[name] = _load_ray().get(preparation[0])()
    return _prepared[name](item)
