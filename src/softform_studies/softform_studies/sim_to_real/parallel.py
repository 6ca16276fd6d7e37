"""Several trainings at once, a process each: they share nothing, and one of them keeps one core busy."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

from softform_core.errors import SoftformError
from softform_core.processes import end_with_parent
from softform_core.threads import one_thread
from softform_studies.sim_to_real.learners import Learners


@dataclass(frozen=True)
class Lesson:
    """One training: the name of a method of `Learners`, and its arguments."""

    way: str
    arguments: tuple[Any, ...]


def learn_all(learners: Learners, lessons: Mapping[str, Lesson], jobs: int) -> Iterator[tuple[str, Any]]:
    """Train everything in `jobs` processes, or with one here and in order; yields names and what was learned as it is.

    Raises:
        SoftformError: If a training fails or its process dies; those that have not begun are dropped.
    """
    if jobs == 1 or len(lessons) == 1:
        for name, lesson in lessons.items():
            yield name, _learn(learners, lesson)
        return
    # Not forked: threads of torch and numba do not survive it.
    pool = ProcessPoolExecutor(min(jobs, len(lessons)), get_context("spawn"), initializer=end_with_parent)
    try:
        quiet = replace(learners, progress=False)
        names = {pool.submit(_learn, quiet, lesson): name for name, lesson in lessons.items()}
        for future in as_completed(names):
            yield names[future], future.result()
    except BrokenProcessPool as error:
        raise SoftformError(
            "A training process died, perhaps for want of memory.", "Run the same command again with --jobs 1."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _learn(learners: Learners, lesson: Lesson) -> Any:
    with one_thread():
        return getattr(learners, lesson.way)(*lesson.arguments)
