"""Priority is asked for, and what asks for it runs without it too."""

import os
import subprocess
import sys
import threading

import pytest

from softform_core.priority import ask_for_priority, threads_of_this_process


def test_without_priority_the_thread_stays_an_ordinary_one() -> None:
    assert ask_for_priority(0) == "ordinary"
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_all_threads_that_run_now_are_found() -> None:
    goes_on = threading.Event()
    other = threading.Thread(target=goes_on.wait)
    other.start()
    try:
        assert {os.getpid(), other.native_id} <= set(threads_of_this_process())
    finally:
        goes_on.set()
        other.join()


def test_priority_is_granted_or_rejected_in_words_and_not_handed_on() -> None:
    """In threads of its own: the test's process stays ordinary."""
    seen: dict[str, object] = {}

    def look() -> None:
        seen["child"] = os.sched_getscheduler(0)

    def ask() -> None:
        seen["answer"] = ask_for_priority(1)
        seen["scheduler"] = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
        child = threading.Thread(target=look)
        child.start()
        child.join()

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    granted = seen["answer"] == "SCHED_FIFO 1"
    assert granted or str(seen["answer"]).startswith("ordinary (")
    assert seen["scheduler"] == (os.SCHED_FIFO if granted else os.SCHED_OTHER)
    assert seen["child"] == os.SCHED_OTHER


def test_a_thread_that_has_ended_is_passed_over() -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    assert ended.native_id is not None
    assert ask_for_priority(1, [ended.native_id]) in ("SCHED_FIFO 1", "ordinary (no right to SCHED_FIFO)")


def test_a_system_that_rejects_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*ignored: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", reject)
    assert ask_for_priority(20, threads_of_this_process()) == "ordinary (no right to SCHED_FIFO)"


_NOBODY = 65534
_LOWER = f"""
import os
from softform_core.priority import ask_for_priority, make_ordinary
print(ask_for_priority(1))
if os.getuid() == 0:
    os.setuid({_NOBODY})  # has no more rights than who may raise threads by limits.conf
make_ordinary([os.getpid()])
print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)
"""


def test_who_may_only_raise_threads_makes_them_ordinary_again() -> None:
    done = subprocess.run([sys.executable, "-c", _LOWER], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    raised, policy = done.stdout.splitlines()
    if raised != "SCHED_FIFO 1":
        pytest.skip(f"This user has no right to SCHED_FIFO: {raised}")
    assert int(policy) == os.SCHED_OTHER


_LOCK = """
import re, resource, sys
from softform_core.priority import lock_memory
def kilobytes(what):
    return int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
before = kilobytes("VmRSS")
if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    resource.setrlimit = lambda *ignored: None
print(lock_memory())
print(kilobytes("VmLck"), kilobytes("VmRSS") - before)
"""


@pytest.mark.parametrize("rights", ["all", "limited"])
def test_memory_is_locked_without_taking_more_or_it_is_said_why_not(rights: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LOCK, rights], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said, (locked, more) = done.stdout.splitlines()[0], map(int, done.stdout.splitlines()[1].split())
    assert (said == "locked") == (locked > 0) and (said == "locked" or said.startswith("not locked ("))
    assert rights == "all" or said == "not locked (limited by RLIMIT_MEMLOCK)"
    assert more < 10_000
