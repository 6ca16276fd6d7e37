"""The console dies and is started again while a page is open: the page says so, comes back, and steers again."""

import os
import signal
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from console_browser import browsers, tab
from console_pages import address_of
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from softform_interfaces.msg import DriverState
from softform_ros.service_calls import call_service

pytestmark = [pytest.mark.timeout(600), pytest.mark.ends_stack]
PATIENCE = 60.0


@pytest.fixture
def start_again(stack, observer):
    """Starts a console where the one that was killed was, with the port that it had."""
    started = []

    def start(command, environment, port):
        started.append(subprocess.Popen([*command, "-p", f"port:={port}"], env=environment))
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            asked = ChangeState.Request(transition=Transition(id=transition))
            assert call_service(observer.node, "console", ChangeState, "console/change_state", asked, PATIENCE).success

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        process.wait(20.0)


@pytest.mark.long
def test_a_page_comes_back_when_the_console_is_started_again(stack, observer, start_again, tmp_path):
    address = address_of(stack)
    with browsers() as browser, tab(browser) as one:
        one.open(address)
        one.wait("document.querySelector('#status').dataset.tone !== 'unknown'", "a known state")

        def drag(u):
            x, y = one.screen(one.place("sheet", u, u))
            one.page.mouse.move(x, y)
            one.page.mouse.down()
            one.page.mouse.move(x, y - 40, steps=4)
            one.page.mouse.up()
            observer.wait_for(lambda: observer.servo and observer.servo[-1].converged, "a solution")

        drag(0.5)
        console = stack.process("console_node")
        command, environment = console.cmdline(), console.environ()
        os.kill(console.pid, signal.SIGKILL)
        one.wait("document.querySelector('#status b').innerText === 'No connection'", "the page says that it is alone")
        observer.wait_for(lambda: observer.state == DriverState.SAFE, "what it steered was let go of")

        start_again(command, environment, urlsplit(address).port)
        one.wait("document.querySelector('#status b').innerText === 'Stopped'", "the page shows what the robot does")
        draws = one.page.evaluate("window.softformPicture.draws")
        one.wait(f"window.softformPicture.draws > {draws}", "the page draws again")
        observer.forget()
        time.sleep(1.0)
        assert not observer.targets and observer.state == DriverState.SAFE, "nothing is resumed"

        drag(0.3)
        assert len(observer.targets[-1].position) == 1
        one.page.keyboard.press("Space")
        one.wait("document.querySelector('#status b').innerText === 'Stopped'", "the page says stopped")
        assert observer.state == DriverState.FAULT and all(observer.driver[-1].at_rest)
        one.page.screenshot(path=tmp_path / "back.png")
