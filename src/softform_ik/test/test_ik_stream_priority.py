"""The priority of who answers a stream: given up by a solver that is too slow for it."""

from softform_ik.stream.scheduling import TOO_SLOW, StreamPriority

PERIOD = 0.02


class Threads:
    """What is asked of the system for two threads."""

    def __init__(self, priority=10):
        self.now, self.alive, self.asked = "ordinary", [1, 2], []
        self.priority = StreamPriority(priority, PERIOD, self.ask, self.end, lambda: self.alive)
        self.priority.begin()

    def ask(self, priority, threads):
        self.asked.append(list(threads))
        self.now = f"SCHED_FIFO {priority}" if priority else "ordinary"
        return self.now

    def end(self, threads):
        assert list(threads) == self.alive
        self.now = "ordinary"

    def costs(self, *costs):
        return sum(self.priority.note(cost) for cost in costs)


def test_a_solver_that_is_fast_enough_keeps_it():
    threads = Threads()
    assert not threads.costs(*[0.6 * PERIOD, 0.019, PERIOD] * 1000)
    assert threads.now == threads.priority.scheduling == "SCHED_FIFO 10"


def test_single_slow_ticks_as_the_first_of_a_model_do_not_end_it():
    threads = Threads()
    assert not threads.costs(*[1.0, 1.0, *[0.01] * 8] * 50)
    assert threads.now == "SCHED_FIFO 10"


def test_a_solver_that_is_too_slow_gives_it_up_once():
    threads = Threads()
    assert threads.costs(*[0.3] * 100) == 1
    assert threads.now == "ordinary" and threads.priority.scheduling == TOO_SLOW


def test_a_slow_solver_that_skips_every_other_tick_gives_it_up_too():
    threads = Threads()
    assert threads.costs(*[0.3, 0.0] * 10) == 1


def test_with_the_next_model_it_is_asked_for_again():
    threads = Threads()
    threads.costs(*[0.3] * 5)
    threads.priority.begin()
    assert threads.now == "SCHED_FIFO 10" and not threads.costs(0.3, 0.01)
    assert threads.costs(*[0.3] * 5) == 1


def test_threads_that_began_since_as_those_of_goals_are_never_asked_for():
    threads = Threads()
    threads.alive = [2, 3, 4]
    threads.costs(*[0.3] * 5)
    threads.priority.begin()
    assert threads.asked == [[1, 2], [2]]


def test_who_asked_for_none_gives_none_up():
    threads = Threads(priority=0)
    assert not threads.costs(*[0.3] * 100) and threads.priority.scheduling == "ordinary"
