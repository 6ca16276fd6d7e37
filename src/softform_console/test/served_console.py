"""A server with a desk that notes what it is asked, for tests without ROS."""

import http.client
import json
import time
from contextlib import contextmanager

from softform_console.access import own_names
from softform_console.control_channel import ControlChannel
from softform_console.operator_role import OperatorRole
from softform_console.protocol import Actuators, DriverInfo, Points, RobotState, Stop, Uploaded
from softform_console.robot_info import info_of
from softform_console.scene_store import SceneStore
from softform_console.server import Routes, ServerThread, bound_socket
from softform_console.stop_request import StopRequests
from softform_console.told_states import ToldStates
from softform_core.errors import SoftformError
from softform_core.robots import load_robot


class Driver:
    stops = 0

    def call_stop(self):
        self.stops += 1
        return lambda: (True, "vented")

    def rest(self, since):
        return True

    def acknowledged(self, since):
        return True


class Desk:
    def __init__(self):
        self.handled, self.lost, self.stops = [], 0, None

    def hello(self):
        return [info_of(load_robot("membrane"))]

    def states(self):
        driver = DriverInfo(
            state="safe",
            reason="",
            holder="",
            faults=[],
            warnings=[],
            epoch="7",
            age=0.1,
            all_at_rest=True,
            stands_still=False,
            stopped=False,
        )
        return [
            RobotState(
                robot=0,
                driver=driver,
                servo=None,
                commanded=None,
                measured=None,
                settled=False,
                past_known=True,
                frames=[],
                contacts=[],
                steering="none",
                points=[],
                obstacles=[],
                model="learned",
                models=["fem", "learned"],
            )
        ]

    def handle(self, message):
        if isinstance(message, Stop):
            self.stops.ask()
        elif isinstance(message, Actuators):
            raise SoftformError("Out of range.", "Less.")
        elif isinstance(message, Points) and message.points[0].output == "boom":
            raise RuntimeError("boom")
        self.handled.append(message)

    def page_lost(self):
        self.lost += 1


class Served:
    slept = 0.0

    def __init__(self, dist, links=None, certificate=None):
        self.desk, self.driver, self.role, self.store = Desk(), Driver(), OperatorRole(), SceneStore()
        self.stops = self.desk.stops = StopRequests(
            self.driver, lambda: None, lambda one: self.routes.tell_stopped(one)
        )
        self.control = self.channel(self.desk)
        names = own_names("127.0.0.1")
        self.routes = Routes(dist, self.control, self.store, self.stops, self.upload, names, links, self.others())
        listening = bound_socket("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        self.server = ServerThread(self.routes.app, listening, certificate)
        self.stops.start()
        self.uploads = []

    def channel(self, desk):
        return ControlChannel(desk, self.role, time.time, "1.2.3", ToldStates(lambda: time.monotonic() + self.slept))

    def others(self):
        return []

    def upload(self, robot, name, unit, content):
        if unit != "mm":
            raise SoftformError("The unit is not given.", "Choose one.")
        self.uploads.append((name, content))
        return Uploaded(id=1, name=name, vertices=3, triangles=1, size=(1.0, 1.0, 0.0), text="")

    def url(self, path):
        return f"ws://127.0.0.1:{self.port}{path}"

    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10.0)
        connection.request(method, path, body, {"Origin": self.origin(), **headers} if method == "POST" else headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


@contextmanager
def served(dist, **options):
    one = Served(dist, **options)
    try:
        yield one
    finally:
        one.server.close()
        one.stops.close()


def until(socket, kind):
    """The next message of a type."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        message = json.loads(socket.recv(timeout=10.0))
        if message["type"] == kind:
            return message
    raise AssertionError(f"no {kind}")
