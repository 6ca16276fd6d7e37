"""Several trainings at once: they share nothing, and one of them keeps one core busy."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from softform_core.executors import Executor, InProcess
from softform_core.threads import one_thread
from softform_studies.sim_to_real.learners import Learners


@dataclass(frozen=True)
class Lesson:
    """One training: the name of a method of `Learners`, and its arguments."""

    way: str
    arguments: tuple[Any, ...]


def learn_all(learners: Learners, lessons: Mapping[str, Lesson], executor: Executor) -> Iterator[tuple[str, Any]]:
    """Train everything where the executor works; yields names and what was learned as it is.

    Raises:
        SoftformError: If a training fails or its worker is lost; those that have not begun are dropped.
    """
    quiet = learners if isinstance(executor, InProcess) else replace(learners, progress=False)
    yield from executor.run(partial(_learner, quiet), list(lessons.items()))


def _learner(learners: Learners) -> Callable[[tuple[str, Lesson]], tuple[str, Any]]:
    def learn(named: tuple[str, Lesson]) -> tuple[str, Any]:
        name, lesson = named
        with one_thread():
            return name, getattr(learners, lesson.way)(*lesson.arguments)

    return learn
