"""Several devices are made safe whatever the system lacks just then."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from softform_actuation.assembly import served_by_devices
from softform_actuation.clock import Clock
from softform_actuation.device import SafeAction
from softform_actuation.latch import Latch
from softform_actuation.states import DriverSettings
from softform_actuation.statistics import LoopStatistics
from softform_actuation.supervisor import Supervisor
from softform_core.robots import load_robot


def test_devices_are_made_safe_one_after_the_other_when_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    robot, made_safe = load_robot("membrane"), []
    (served,) = served_by_devices(robot)

    def device(name: str) -> Any:
        def make_safe() -> bool:
            made_safe.append(name)
            return True

        return SimpleNamespace(clock=Clock(), identity=name, safe_action=SafeAction.VENT, make_safe=make_safe)

    devices = [(device("left"), served), (device("right"), served)]
    supervisor = Supervisor(
        devices, robot, DriverSettings(), LoopStatistics(), lambda report: None, lambda readings: None, Latch()
    )

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    supervisor.make_safe_quietly("no reason")
    assert made_safe == ["left", "right"] and all(one.acknowledged for one in supervisor.connections)
