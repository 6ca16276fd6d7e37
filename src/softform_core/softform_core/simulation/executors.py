"""Where the work of a data set is done: in this process, or shared among others."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from softform_core.errors import SoftformError
from softform_core.processes import end_with_parent

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Item = TypeVar("Item")
Result = TypeVar("Result")


class InProcess:
    """One worker: this process."""

    def run(self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
        """Results in the order of the items; `make` prepares the worker."""
        work = make()
        for item in items:
            yield work(item)


class ProcessPool:
    """Fresh (spawned) processes of one thread each."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def run(self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]) -> Iterator[Result]:
        """Results as they are ready.

        Args:
            make: Prepares a worker, once for each; with its arguments it must be picklable, as items and results.
            items: The work.

        Raises:
            SoftformError: If a worker is lost.
        """
        before = {name: os.environ.get(name) for name in _ONE_THREAD}
        os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
        workers = min(self._jobs, len(items))
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin_worker, initargs=(make,))
        try:
            tasks = [pool.submit(_work_on, item) for item in items]
            for task in as_completed(tasks):
                yield task.result()
        except BrokenProcessPool as error:
            raise SoftformError(
                "A worker process died, perhaps for want of memory.",
                "Samples written so far are kept. Run the same command again, with fewer --jobs.",
            ) from error
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
    end_with_parent()
    _worker = make()


def _work_on(item: Any) -> Any:
    assert _worker is not None
    return _worker(item)
