"""A stop is confirmed by what was measured, and by nothing else."""

import threading

import pytest

from softform_console import stop_request
from softform_console.stop_request import StopRequests


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
    driver, requests, _, _ = stop
    call = driver.call_stop
    driver.call_stop = lambda: 1 / 0
    assert requests.wait(requests.ask()).stage == "unconfirmed"
    driver.call_stop, driver.answer, driver.at_rest = call, (True, ""), True
    assert requests.wait(requests.ask()).stage == "confirmed"
