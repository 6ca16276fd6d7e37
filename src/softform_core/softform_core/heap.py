"""Keep glibc's heap of this process from growing, for processes that run for days."""

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_LARGE = 4 * 2**20  # bytes; SuperLU's work arrays are larger
_KEPT = 256 * 2**20  # bytes of free heap that are kept rather than asked for again at every solve


def keep_large_arrays_off_the_heap() -> None:
    """Let every array of 4 MB or more come from the system and go back to it when it is freed.

    By itself glibc raises this threshold to 32 MB as such arrays are freed. SuperLU's then lie on the heap among small
    ones, leave holes that the next solve's do not fit, and the rig grows for as long as it runs.
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
    libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)


def give_back_what_is_free() -> None:
    """Give every whole page of the heap that is free back to the system, also between what is in use.

    By itself glibc gives back the heap's end only. What comes and goes in changing sizes, as a scan's arrays do, leaves
    holes there that grow with every new largest one. Takes about 2 ms on a heap of 200 MB.
    """
    ctypes.CDLL(None).malloc_trim(0)
