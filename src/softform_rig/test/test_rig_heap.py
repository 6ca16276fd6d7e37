"""Large arrays go back to the system even where small ones lie between them."""

import subprocess
import sys

import pytest

LARGE, SMALL, COUNT = 6 * 2**20, 2**20, 20
CHILD = f"""
import ctypes, sys, psutil
from softform_rig.heap import keep_large_arrays_off_the_heap

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.memset.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
if sys.argv[1] == "kept off":
    keep_large_arrays_off_the_heap()
libc.free(libc.malloc(2 * {LARGE}))  # from now on glibc by itself would put arrays up to this size on the heap
before = psutil.Process().memory_info().rss
large, small = [], []
for _ in range({COUNT}):
    large.append(libc.memset(libc.malloc({LARGE}), 1, {LARGE}))
    small.append(libc.malloc({SMALL}))  # no hole that was left before takes it; never written, so hardly there
for array in large:
    libc.free(array)
print(psutil.Process().memory_info().rss - before)
"""


def _left_after_freeing(how: str) -> int:
    child = subprocess.run([sys.executable, "-c", CHILD, how], capture_output=True, text=True, timeout=60, check=True)
    return int(child.stdout)


@pytest.mark.parametrize(("how", "is_given_back"), [("kept off", True), ("left alone", False)])
def test_large_arrays_between_small_ones_are_given_back(how: str, is_given_back: bool) -> None:
    assert (_left_after_freeing(how) < 0.1 * COUNT * LARGE) == is_given_back
