"""Jobs of the console on a running stack: frames are collected, judged in a report, and a stop ends what moves."""

import http.client
import json
import os
import re
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from console_browser import browsers, tab
from console_pages import page_of

from softform_interfaces.msg import DriverState

STACK = {"record": "true"}
PATIENCE = 480.0

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def stack(stacks, tmp_path_factory):
    """A stack whose data and runs, and those of its jobs, are in a folder of this test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_DATA", str(tmp_path_factory.mktemp("data")))
        patch.setenv("SOFTFORM_RUNS", str(tmp_path_factory.getbasetemp()))
        yield stacks.launched_with(STACK)


def got(address, path):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20.0)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200, (path, answer.status)
    return answer.read()


def newest(address, *states):
    """The newest job, once it is in one of the states."""
    deadline = time.monotonic() + PATIENCE
    while True:
        told = json.loads(got(address, "/jobs"))
        if told["jobs"] and told["jobs"][0]["state"] in states:
            return told["jobs"][0]
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def start(page, command, *arguments):
    page.send(type="start_job", epoch=page.epoch, command=command, arguments=list(arguments))


@pytest.mark.long
def test_frames_are_collected_and_judged_in_a_report(observer, address, stack, tmp_path):
    with page_of(address) as page:
        page.operate()
        start(page, "collect", "--frames", "2")
        newest(address, "running")
        observer.wait_for(lambda: observer.commands and observer.measured.max() > 1000.0, "motion")
        assert observer.driver[-1].holder == observer.commands[-1].source == "collector"
        start(page, "evaluate")
        assert "A job runs: collect" in page.wait_for("notice", lambda one: one["about"] == "start_job")["text"]
    collected = newest(address, "done", "failed")  # without the page that began it
    assert collected["state"] == "done", json.loads(got(address, "/jobs"))["log"]
    observer.wait_for(lambda: observer.state == DriverState.SAFE, "made safe")

    with browsers() as browser, tab(browser, viewport={"width": 1200, "height": 900}) as one:
        one.page.goto(f"{address}/")
        one.page.get_by_role("button", name="Jobs").click()
        one.page.get_by_label("Command").select_option("evaluate")
        one.page.get_by_role("button", name="Start", exact=True).click()
        link = one.page.get_by_role("link", name="report.html")
        link.wait_for(timeout=1e3 * PATIENCE)
        one.page.screenshot(path=Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path)) / "jobs.png")
        with one.page.context.expect_page() as opened:
            link.click()
        opened.value.get_by_text("Hausdorff").first.wait_for(timeout=20_000)
        opened.value.screenshot(path=Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path)) / "report.png")
        assert not one.outside and not one.complaints
    report = next(path for path in newest(address, "done")["files"] if path.endswith(".html"))
    assert report == "evaluate/membrane/report.html" and b"2 frames" in got(address, f"/runs/{report}")

    shelf = json.loads(got(address, "/shelf"))
    assert any(one["path"].startswith(stack.run_dir.name) for one in shelf["recordings"])
    assert shelf["in_use"] == "Started with: model learned, folder the robot's own, sim_to_real auto."


@pytest.mark.long
def test_a_stop_ends_what_is_collected_and_the_job_says_so(observer, address):
    with page_of(address) as page:
        page.operate()
        page.send(type="actuators", epoch=page.epoch, values=[500.0] * 9)
        page.wait_for("state", lambda state: state["robots"][0]["steering"] == "manual")
        start(page, "collect", "--frames", "9")
        assert "steered from here" in page.wait_for("notice", lambda one: one["about"] == "start_job")["text"]
        page.send(type="release")
        observer.wait_for(lambda: observer.state == DriverState.SAFE, "made safe")
        start(page, "collect", "--frames", "9")
        observer.wait_for(lambda: observer.driver[-1].holder == "collector", "the collector's lease")
        observer.wait_for(lambda: observer.measured.max() > 1000.0, "motion")
        page.send(type="stop")
        page.wait_for("stopped", lambda one: one["stage"] == "confirmed")
        observer.wait_for(lambda: all(observer.driver[-1].at_rest), "at rest, as the driver says, too")
        assert observer.state == DriverState.FAULT and observer.driver[-1].holder == ""
        failed = newest(address, "failed")
        assert re.search("stop|fault", failed["text"]), failed


def test_the_page_commissions_a_chamber_and_is_asked_what_moved(observer, address):
    with page_of(address) as page:
        page.operate()
        start(page, "commission", "c3")

        def asked(word):
            deadline = time.monotonic() + PATIENCE
            while not ((question := newest(address, "running")["question"]) and word in question["text"]):
                assert time.monotonic() < deadline, json.loads(got(address, "/jobs"))
                time.sleep(0.1)
            return newest(address, "running"), question

        def answer(job, question, text):
            page.send(type="answer_job", id=job["id"], number=question["number"], text=text)

        job, question = asked("press Enter")
        assert not observer.commands, "nothing moves before somebody looks"
        answer(job, question, "")
        job, other = asked("Which chamber moved?")
        assert other["choices"] == [*(f"c{number}" for number in range(1, 10)), "none", "again", "stop"]
        values = np.array([command.value for command in observer.commands])
        assert values[:, 2].max() == pytest.approx(1000.0) and np.delete(values, 2, axis=1).max() == 0.0
        assert observer.state == DriverState.SAFE and all(observer.driver[-1].at_rest)
        answer(job, question, "c3")  # of a question that is over
        assert "does not ask that" in page.wait_for("notice", lambda one: one["about"] == "answer_job")["text"]
        answer(job, other, "c3")
        done = newest(address, "done", "failed")
    assert done["text"] == "Each of c3 moved alone when it was asked." and done["question"] is None


def test_a_console_that_is_frozen_while_a_chamber_is_commissioned_leaves_it_safe(observer, address, stack):
    """The job commands by itself, and waits for an answer at rest."""
    with page_of(address) as page:
        page.operate()
        start(page, "commission", "c5")
        deadline = time.monotonic() + PATIENCE
        while not (question := newest(address, "running")["question"]):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        page.send(type="answer_job", id=newest(address, "running")["id"], number=question["number"], text="")
        observer.wait_for(lambda: observer.measured.max() > 500.0, "a step")
        console = stack.process("console_node")
        console.send_signal(signal.SIGSTOP)
        try:
            observer.wait_for(
                lambda: observer.state == DriverState.SAFE and all(observer.driver[-1].at_rest), "at rest"
            )
        finally:
            console.send_signal(signal.SIGCONT)
        page.send(type="operate", take=True)
        page.send(type="cancel_job", id=newest(address, "running")["id"])
        assert newest(address, "cancelled", "failed")["question"] is None
    assert observer.state == DriverState.SAFE
