"""Runs many schedules on all cores, finds those that break a promise, and shrinks them."""

import itertools
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from softform_system_tests.schedules.schedule import Schedule, draw, shrunk
from softform_system_tests.schedules.simulated_stack import SimulatedStack

_SEEDS_A_BATCH = 100


@dataclass(frozen=True)
class Failure:
    """A schedule that broke promises.

    Attributes:
        schedule: As it was drawn.
        broken: Which promises, in words.
    """

    schedule: Schedule
    broken: list[str]


@dataclass(frozen=True)
class _Batch:
    failures: list[Failure]
    states: set[tuple[Any, ...]]


def explore(seeds: range, jobs: int) -> dict[str, Any]:
    """Run the schedules of some seeds in so many processes.

    Returns:
        `schedules` that were run; `violations`, how many broke a promise; `states`, how many different states of
        driver, commanders and robot they came through; `seconds` it took; `shortest_failure`, the shortest of them
        after shrinking (None without one): its `seed`, what it `breaks`, and its `items` in words; `failing_seeds`.
    """
    began = time.monotonic()
    failures: list[Failure] = []
    states: set[tuple[Any, ...]] = set()
    batches = [range(first, min(first + _SEEDS_A_BATCH, seeds.stop)) for first in seeds[::_SEEDS_A_BATCH]]
    with tqdm(total=len(seeds), unit="schedule", desc="bench schedules") as bar:
        for seeds_run, batch in zip(batches, _run_all(batches, jobs), strict=True):
            failures += batch.failures
            states |= batch.states
            bar.set_postfix(violations=len(failures), states=len(states), refresh=False)
            bar.update(len(seeds_run))
    return {
        "schedules": len(seeds),
        "violations": len(failures),
        "states": len(states),
        "seconds": round(time.monotonic() - began, 1),
        "shortest_failure": _shortest(failures),
        "failing_seeds": [failure.schedule.seed for failure in failures],
    }


def _run_all(batches: Iterable[range], jobs: int) -> Iterator[_Batch]:
    if jobs == 1:
        yield from map(_run, batches)
        return
    context = multiprocessing.get_context("spawn")
    cores = context.Queue()
    for core in itertools.islice(itertools.cycle(sorted(os.sched_getaffinity(0))), jobs):
        cores.put(core)
    with context.Pool(jobs, _stay_on_a_core, (cores,)) as pool:
        yield from pool.imap(_run, batches)


def _stay_on_a_core(cores: "multiprocessing.Queue[int]") -> None:
    """Threads that take turns are woken twice as fast on one core as on two."""
    os.sched_setaffinity(0, {cores.get()})


def _run(seeds: range) -> _Batch:
    logging.disable(logging.CRITICAL)  # a driver at fault says so, and here that is all day's work
    threading.stack_size(512 * 1024)
    failures, states = [], set[tuple[Any, ...]]()
    for seed in seeds:
        stack = SimulatedStack(schedule := draw(seed))
        if broken := stack.run():
            failures.append(Failure(schedule, broken))
        states |= stack.states
    return _Batch(failures, states)


def _shortest(failures: list[Failure], tried: int = 5) -> dict[str, Any] | None:
    """The shortest of the first failures of each promise, shrunk."""
    found = []
    for failure in {one.broken[0].partition(":")[0]: one for one in reversed(failures)}.values():
        promise = failure.broken[0].partition(":")[0]

        def fails(schedule: Schedule, promise: str = promise) -> bool:
            return any(one.startswith(promise) for one in SimulatedStack(schedule).run())

        small = shrunk(failure.schedule, fails)
        found.append((small, SimulatedStack(small).run()))
        if len(found) == tried:
            break
    if not found:
        return None
    small, broken = min(found, key=lambda one: len(one[0].items))
    return {"seed": small.seed, "breaks": broken, "items": [str(item) for item in small.items]}
