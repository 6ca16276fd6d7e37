"""A node in a thread of this program: how it ends."""

import os
import threading
import time

from softform_ros.background_node import BackgroundNode
from softform_ros.timers import create_steady_timer


def test_the_callback_that_runs_when_it_shall_stop_keeps_its_context():
    background = BackgroundNode(f"ending_{os.getpid()}", "/softform")
    background.open()
    entered, worked = threading.Event(), []

    def slow() -> None:
        entered.set()
        time.sleep(0.3)
        background.node.get_publishers_info_by_topic("/diagnostics")
        worked.append(True)

    create_steady_timer(background.node, 0.01, slow)
    assert entered.wait(10.0)
    background.stop()
    assert worked and not background.is_open
    background.close()


def test_one_that_has_nothing_to_do_stops_at_once():
    background = BackgroundNode(f"idle_{os.getpid()}", "/softform")
    background.open()
    time.sleep(0.2)
    began = time.monotonic()
    background.stop()
    assert time.monotonic() - began < 1.0 and not background.thread.is_alive()
    background.close()
