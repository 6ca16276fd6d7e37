"""Collecting with a scanner that a person triggers: who is asked when, how long is waited, and what is told."""

import os
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from softform_collect import by_hand, cli_collect, client
from softform_collect.client import CaptureFailedError, CollectRequest
from softform_core.errors import SoftformError

REQUEST = CollectRequest("membrane", 3, "scanner", None, 0, True, "default", "softform", 0, False, by_hand=True)


@pytest.fixture
def session(monkeypatch):
    """A stack that captures the frames of `misses` at the second try only."""
    told = SimpleNamespace(done=[], said=[], asked=[], misses={1}, ends_at=None)

    def send(request, namespace, output, say):
        frame = request.frames - 1
        if frame in told.misses:
            told.misses.remove(frame)
            raise CaptureFailedError("No captured_cloud came.", "Scan.")
        told.done.append(frame)
        return Path("/data/frames.zarr")

    def ask(question):
        told.asked.append(question)
        return len(told.asked) != told.ends_at

    monkeypatch.setattr(client, "_send", send)
    monkeypatch.setattr(client, "store_of", lambda request: Path("/data/frames.zarr"))
    monkeypatch.setattr(client, "_next_frame", lambda path, frames: len(told.done) if len(told.done) < frames else None)
    told.collect = lambda: client._send_until_done(REQUEST, "softform", "", told.said.append, ask)
    return told


def test_each_frame_is_a_goal_of_its_own_and_moves_when_the_person_says_so(session):
    assert session.collect() == Path("/data/frames.zarr")
    assert session.done == [0, 1, 2]
    assert [one.split(":")[0] for one in session.asked] == [f"frame {number} of 3" for number in (0, 1, 1, 2)]
    assert session.said == ["No captured_cloud came. Scan. The robot vents."]


def test_who_does_not_press_enter_moves_nothing(session):
    session.ends_at = 1
    with pytest.raises(KeyboardInterrupt):
        session.collect()
    assert session.done == []


@pytest.mark.parametrize(("held", "waited"), [(600.0, 560.0), (100.0, 60.0), (86_400.0, 3600.0)])
def test_a_scan_is_waited_for_until_just_before_the_driver_lets_go(monkeypatch, held, waited):
    values, waits = {"hold_timeout": held, "settle_timeout": 30.0}, []

    def call(node, server, kind, service, request, timeout):
        waits.append((service, request.parameters[0].name, request.parameters[0].value.double_value))
        return SimpleNamespace(results=[SimpleNamespace(successful=True)])

    monkeypatch.setattr(by_hand, "asked_parameters", lambda node, server, names, timeout: {names[0]: values[names[0]]})
    monkeypatch.setattr(by_hand, "call_service", call)
    assert by_hand.have_collector_wait(None) == waited
    assert waits == [("collector/set_parameters", "capture_timeout", waited)]


def test_a_driver_that_lets_go_at_once_is_no_use_to_a_person(monkeypatch):
    monkeypatch.setattr(by_hand, "asked_parameters", lambda node, server, names, timeout: {names[0]: 30.0})
    with pytest.raises(SoftformError, match="too short to scan it by hand.*60 s at least"):
        by_hand.have_collector_wait(None)


def test_frames_of_a_stack_that_runs_are_looked_for_where_its_own_robot_has_them(monkeypatch):
    monkeypatch.setattr(client, "BackgroundNode", lambda name, namespace: nullcontext())
    monkeypatch.setattr(client, "value_of", lambda node, server, name: {"collector": "mannequin"}[server])
    assert client.store_of(REQUEST).parts[-2:] == ("mannequin", "frames.zarr")
    assert client.store_of(replace(REQUEST, attach=False)).parts[-2:] == ("membrane", "frames.zarr")
    assert client.store_of(replace(REQUEST, output=Path("/mnt/a.zarr"))) == Path("/mnt/a.zarr")


def test_an_enter_before_the_question_moves_nothing(monkeypatch):
    keyboard, terminal = os.openpty()
    with open(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        os.write(keyboard, b"\n")
        answered = threading.Timer(1.0, os.write, (keyboard, b"\n"))
        answered.start()
        began = time.monotonic()
        assert cli_collect._asked("Enter moves the robot.")
        assert time.monotonic() - began > 0.9
        answered.join()
    os.close(keyboard)


def test_what_the_scanner_rejects_from_now_on_is_said():
    said, heard = [], []
    node = SimpleNamespace(
        get_namespace=lambda: "/softform",
        create_subscription=lambda kind, topic, callback, profile: heard.append(callback),
        destroy_subscription=lambda subscription: heard.clear(),
    )

    def tell(name, count, reason):
        values = {"rejected": count, "last_rejected": f"{count}.ply", "last_rejected_reason": reason}
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        heard[0](DiagnosticArray(status=[DiagnosticStatus(name=name, values=pairs)]))

    with by_hand.rejected_scans(node, said.append):
        tell("/softform/scanner", "1", "before")
        tell("/softform/scanner", "1", "before")
        tell("/left/scanner", "7", "another robot's")
        tell("/softform/scanner", "2", "turned")
        tell("/softform/scanner", "2", "turned")
    assert said == ["2.ply is rejected: turned"] and not heard
