"""The signals that ask a process to end, and whether whoever started it wants one ignored."""

import signal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_ignored(number: int) -> bool:
    """Return whether whoever started this process wants a stop signal ignored, as `nohup` does with SIGHUP.

    A shell without job control ignores SIGINT together with SIGQUIT for all that it starts with `&`, which nobody asked
    for: that does not count.
    """
    if number == signal.SIGINT and signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
        return False
    return signal.getsignal(number) == signal.SIG_IGN
