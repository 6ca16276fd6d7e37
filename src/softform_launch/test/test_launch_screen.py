"""The launch's screen: it never waits for its reader, be it a pipe or a terminal."""

import os
import pty
import threading

import pytest

from softform_launch.launch_screen import LARGEST_BACKLOG, Screen


def pipe():
    reader, writer = os.pipe()
    return reader, writer


@pytest.mark.parametrize("make", [pipe, pty.openpty])
def test_a_reader_that_does_not_read_holds_nobody_up(make):
    reader, writer = make()
    screen, shown = Screen(writer), threading.Event()

    def show():
        for number in range(40_000):
            screen.show("node", b"line %d" % number)
        screen.flush(0.2)
        shown.set()

    threading.Thread(target=show, daemon=True).start()
    assert shown.wait(30.0), "it waits for its reader"
    assert screen.has_backlog and len(screen._backlog) <= LARGEST_BACKLOG + 1000
    assert os.read(reader, 4096).startswith(b"[node] line 0")


def test_what_a_slow_reader_reads_late_is_there():
    reader, writer = pty.openpty()
    screen = Screen(writer)
    screen.show("node", 3000 * b"x")
    screen.show("node", b"the end")
    seen = b""
    while b"the end" not in seen:
        seen += os.read(reader, 4096)
        screen.flush()
    assert seen.count(b"x") == 3000


def test_what_a_node_says_moves_no_cursor():
    reader, writer = os.pipe()
    Screen(writer).show("node", b"\x1b[2J\rall is well \xff")
    assert os.read(reader, 4096).decode() == "[node] \ufffd[2J\ufffdall is well \ufffd\n"
