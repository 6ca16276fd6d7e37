"""Executors for independent items of work: in this process, in others beside it, or on a Ray cluster."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, connection, get_context, parent_process
from typing import Any, Protocol

from softform_core.errors import SoftformError
from softform_core.ray_executor import RayExecutor
from softform_core.workers import ONE_THREAD, Item, Result, default_jobs


class Executor(Protocol):
    """Does the work of many independent items."""

    def run(self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
        """Yield results as they are ready, in any order: a result names its item where that matters.

        Args:
            make: Prepares a worker, once for each; with its arguments it must be picklable, as items and results.
            items: The work.

        Raises:
            SoftformError: If a worker raises one, or is lost.
        """
        ...


def make_executor(jobs: int | None = None, cluster: str | None = None) -> Executor:
    """Return the executor that a command asks for.

    Args:
        jobs: Processes on this machine; one for each core by default.
        cluster: Address of a Ray cluster instead (see `RayExecutor`).

    Raises:
        SoftformError: If both are given, or fewer jobs than one.
    """
    if cluster is not None:
        if jobs is not None:
            raise SoftformError("--jobs and --cluster exclude each other.", "A cluster works with all of its cores.")
        return RayExecutor(cluster)
    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise SoftformError(f"{jobs} jobs cannot work.", "Give one at least.")
    return InProcess() if jobs == 1 else ProcessPool(jobs)


class InProcess:
    """One worker: this process. Results come in the order of the items."""

    def run(self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
        """See `Executor`."""
        work = make()
        for item in items:
            yield work(item)


class ProcessPool:
    """Fresh (spawned) processes of one thread each, no more than there are items; this process for a single one."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def run(self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
        """See `Executor`."""
        workers = min(self._jobs, len(items))
        if workers < 2:
            yield from InProcess().run(make, items)
            return
        others = set(active_children())
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)
        # Not forked: threads of torch and numba do not survive it.
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin_worker, initargs=(make,))
        try:
            tasks = [pool.submit(_work_on, item) for item in items]
            for task in as_completed(tasks):
                yield task.result()
        except BrokenProcessPool as error:
            raise SoftformError(
                "A worker process died, perhaps for want of memory.",
                "What was finished is kept. Run the same command again, with fewer --jobs.",
            ) from error
        except KeyboardInterrupt:
            for worker in set(active_children()) - others:
                worker.terminate()  # what it is at may take minutes
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name)
                else:
                    os.environ[name] = value


_worker: Callable[[Any], Any] | None = None


def _begin_worker(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _worker
    # A killed process cannot tell its workers to stop.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = make()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _work_on(item: Any) -> Any:
    assert _worker is not None
    return _worker(item)
