"""A stop is confirmed by what was measured, and by nothing else."""

import threading
import time
from types import SimpleNamespace

import pytest
from std_srvs.srv import Trigger

from softform_console import stop_request
from softform_console.robot_link import RobotLink
from softform_console.robots_desk import EveryDriver
from softform_console.stop_request import StopRequests
from softform_core.robots import load_robot
from softform_ros.background_node import BackgroundNode


class Driver:
    """Answers, acknowledges and comes to rest when it is told."""

    def __init__(self):
        self.answer, self.is_acknowledged, self.at_rest, self.stops = None, False, None, 0

    def call_stop(self):
        self.stops += 1
        return lambda: self.answer

    def rest(self, since):
        return self.at_rest

    def acknowledged(self, since):
        return self.is_acknowledged


@pytest.fixture
def stop(monkeypatch):
    monkeypatch.setattr(stop_request, "CONFIRM_SECONDS", 0.5)
    driver, told, forgotten = Driver(), [], threading.Event()
    requests = StopRequests(driver, forgotten.set, told.append)
    requests.start()
    yield driver, requests, told, forgotten
    requests.close()


def test_a_stop_is_confirmed_once_all_is_measured_at_rest(stop):
    driver, requests, told, forgotten = stop
    number = requests.ask()
    assert forgotten.wait(1.0)
    driver.is_acknowledged = True
    while len(told) < 2:
        pass
    driver.answer, driver.at_rest = (True, "vented"), True
    result = requests.wait(number)
    assert [one.stage for one in told] == ["asked", "acknowledged", "confirmed"]
    assert result.stage == "confirmed" and driver.stops == 1


def test_an_answer_alone_does_not_confirm(stop):
    driver, requests, told, _ = stop
    driver.answer, driver.at_rest = (True, ""), False
    assert requests.wait(requests.ask()).stage == "unconfirmed"
    assert "not all is measured at rest" in told[-1].message


def test_rest_that_the_driver_does_not_answer_for_is_not_confirmed(stop):
    driver, requests, _, _ = stop
    driver.at_rest = True
    assert "No driver has answered" in requests.wait(requests.ask()).message


def test_a_stop_that_failed_says_why(stop):
    driver, requests, _, _ = stop
    driver.answer = (False, "c4 is still at 3279 Pa.")
    result = requests.wait(requests.ask())
    assert result.stage == "unconfirmed" and result.message.startswith("c4 is still at 3279 Pa.")


def test_a_stop_that_raises_is_told_and_the_next_works(stop):
    driver, requests, _, forgotten = stop
    call = driver.call_stop
    driver.call_stop = lambda: 1 / 0
    assert requests.wait(requests.ask()).stage == "unconfirmed" and forgotten.is_set()
    driver.call_stop, driver.answer, driver.at_rest = call, (True, ""), True
    assert requests.wait(requests.ask()).stage == "confirmed"


def test_a_driver_that_is_not_there_delays_no_stop_and_is_asked_once_it_is():
    with BackgroundNode("console", "alone/stop_request") as node:
        link = RobotLink(node, load_robot("membrane"), SimpleNamespace(driver=None), print, print)
        begun = time.monotonic()
        answer = link.call_stop()
        assert answer() is None and time.monotonic() - begun < 0.3
        asked = threading.Event()

        def stop(request, response):
            asked.set()
            response.success, response.message = True, "vented"
            return response

        service = node.create_service(Trigger, "stop", stop)
        deadline = time.monotonic() + 5.0
        while (said := answer()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert asked.is_set() and said == (True, "vented")
        node.destroy_service(service)
        while link._stop.service_is_ready():
            time.sleep(0.01)
        answer = link.call_stop()
        time.sleep(1.1)
        assert answer() == (False, "No driver offers a stop.")
        link.close()


def test_a_robot_whose_stop_raises_does_not_keep_the_others_from_being_asked():
    asked = []

    def seat(name, call):
        link = SimpleNamespace(call_stop=call)
        view = SimpleNamespace(driver_heard_at=time.monotonic())
        return SimpleNamespace(link=link, view=view, robot=SimpleNamespace(title=name))

    answer = EveryDriver(
        [seat("one", lambda: 1 / 0), seat("two", lambda: (asked.append("two"), lambda: (True, "vented"))[1])]
    ).call_stop()
    assert asked == ["two"] and answer()[0] is False and "'one'" in answer()[1]
