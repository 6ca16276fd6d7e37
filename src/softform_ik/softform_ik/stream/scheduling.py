"""Priority of the threads that answer a stream: only while they leave time to others."""

from collections.abc import Callable, Iterable

from softform_core.priority import ask_for_priority, make_ordinary, threads_of_this_process

SLOW_TICKS = 3.0
"""Ticks that cost more than their period after which the priority is given up; the first of a model pays once."""

_FORGOTTEN = 0.25
"""Slow ticks that each other one makes up for: a slow solver answers some ticks without a solve."""

TOO_SLOW = "ordinary (a solve by this model takes longer than its period)"


class StreamPriority:
    """Lets the threads of this process run before all ordinary ones until their work costs more than there is time.

    Who always has work to do and runs before all others leaves them nothing: on two cores a slow solver would keep
    the rest of the stack from half the machine. It cannot meet its deadlines anyway.

    Args:
        priority: 1 … 99 of SCHED_FIFO; 0 to leave the threads as they are.
        period: Time that a tick may cost, s.
        ask: Asks for a priority of threads, and returns what they run as.
        end: Makes threads ordinary.
        threads: Returns the threads of this process.

    Attributes:
        scheduling: What the threads run as.
    """

    def __init__(
        self,
        priority: int,
        period: float,
        ask: Callable[[int, Iterable[int]], str] = ask_for_priority,
        end: Callable[[Iterable[int]], None] = make_ordinary,
        threads: Callable[[], Iterable[int]] = threads_of_this_process,
    ) -> None:
        self._priority, self._period = priority, period
        self._ask, self._end, self._threads = ask, end, threads
        self._slow, self.scheduling = 0.0, "ordinary"
        self._answering: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Ask for the priority, for all threads that there are; again where another model is in use from now on.

        Then it is asked for those of the first time alone: what has begun since, such as goals, only computes.
        """
        self._slow, now = 0.0, frozenset(self._threads())
        self._answering = self._answering & now if self._answering else now
        self.scheduling = self._ask(self._priority, sorted(self._answering))

    def note(self, cost: float) -> bool:
        """Take what a tick has cost, s of a processor's time; returns whether the priority was given up for that."""
        self._slow = self._slow + 1.0 if cost > self._period else max(0.0, self._slow - _FORGOTTEN)
        if self._slow < SLOW_TICKS or self._priority <= 0 or self.scheduling == TOO_SLOW:
            return False
        self._end(self._threads())
        self.scheduling = TOO_SLOW
        return True
