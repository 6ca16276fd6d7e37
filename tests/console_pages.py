"""Pages of a stack's console, as programs, and what the stack does meanwhile."""

import http.client
import json
import re
import socket
import struct
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
from websockets.sync.client import connect

from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_ply
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState, PredictedMesh, ServoState, TargetPoints
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import (
    ACTUATOR_COMMAND_LOG,
    ACTUATOR_STATE_READER,
    LATCHED_STATE,
    PREDICTED_SURFACE,
    SERVO_STATE,
    TARGET_READER,
)
from softform_ros.service_calls import call_driver

PATIENCE = 30.0


def address_of(stack):
    """Where the console of a stack said that it is."""
    deadline = time.monotonic() + PATIENCE
    while not (found := re.findall(r"the page: (http://\S+)/", stack.log)):
        assert time.monotonic() < deadline, stack.log
        time.sleep(0.1)
    return found[-1]


class Observer:
    """What the stack does, as any node hears it."""

    def __init__(self):
        self._background = BackgroundNode("observer", "softform")
        self.node = self._background.__enter__()
        self.commands, self.values, self.driver, self.servo, self.meshes, self.targets = [], [], [], [], [], []
        for kind, topic, kept, qos in (
            (ActuatorCommand, "actuator_command", self.commands, ACTUATOR_COMMAND_LOG),
            (ActuatorState, "actuator_state", self.values, ACTUATOR_STATE_READER),
            (DriverState, "driver_state", self.driver, LATCHED_STATE),
            (ServoState, "servo_state", self.servo, SERVO_STATE),
            (PredictedMesh, "predicted_mesh", self.meshes, PREDICTED_SURFACE),
            (TargetPoints, "target_points", self.targets, TARGET_READER),
        ):
            self.node.create_subscription(kind, topic, kept.append, qos)

    def wait_for(self, condition, what, patience=PATIENCE):
        """Wait until a condition holds; returns what it returned."""
        deadline = time.monotonic() + patience
        while not (found := condition()):
            assert time.monotonic() < deadline, (
                f"waited in vain: {what}; the driver said {self.driver[-1:]}, the servo {self.servo[-1:]}"
            )
            time.sleep(0.02)
        return found

    def at_rest(self):
        """Stop and reset, and wait until the robot is at rest and nobody has it."""
        for service in ("stop", "reset"):
            assert call_driver(self.node, service, PATIENCE).success
        self.wait_for(lambda: self.driver and self.driver[-1].state == DriverState.SAFE, "a safe robot")
        self.values.clear()
        self.wait_for(lambda: self.values, "measured values")
        self.forget()

    def forget(self):
        """Forget what was heard but the driver's state."""
        for kept in (self.commands, self.values, self.servo, self.meshes, self.targets):
            kept.clear()
        del self.driver[:-1]

    @property
    def state(self):
        return self.driver[-1].state if self.driver else None

    @property
    def measured(self):
        return np.array(self.values[-1].value) if self.values else np.zeros(9)

    def surface(self, u, v):
        """Where (u, v) of the only patch is by the newest predicted mesh, m: bilinear in its grid."""
        points = np.frombuffer(self.meshes[-1].vertices, np.float32).reshape(-1, 3)
        side = round(len(points) ** 0.5)
        grid, at = points.reshape(side, side, 3), np.array([u, v]) * (side - 1)
        i, j = np.minimum(at.astype(int), side - 2)
        a, b = at - (i, j)
        return (1 - a) * ((1 - b) * grid[i, j] + b * grid[i, j + 1]) + a * (
            (1 - b) * grid[i + 1, j] + b * grid[i + 1, j + 1]
        )

    def is_at(self, u, v, place, within=0.002):
        """Whether (u, v) is predicted to be at a place, m."""
        return bool(self.meshes) and np.linalg.norm(self.surface(u, v) - np.asarray(place)) < within

    def close(self):
        self._background.close()


def hill(observer, file):
    """Write a target that the membrane reaches, of the mesh that is predicted at rest; returns the file."""
    observer.wait_for(lambda: observer.meshes, "the mesh")
    rest = np.frombuffer(observer.meshes[-1].vertices, np.float32).reshape(-1, 3).astype(float)
    wanted = rest + [0.0, 0.0, 1.0] * (0.02 * np.exp(-(np.linalg.norm(rest, axis=1, keepdims=True) ** 2) / 0.005))
    write_ply(file, Shape.from_mesh(wanted, load_robot("membrane").patches.triangles(len(wanted))))
    return file


def uploaded(address, file, robot=0):
    """Drop a target file for a robot; returns what is answered."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20.0)
    connection.request("POST", f"/targets?name=target.ply&unit=m&robot={robot}", file.read_bytes(), {"Origin": address})
    return json.loads(connection.getresponse().read())


def forget_program(one):
    """Take away the program that a browser's page shows, which may be that of a test before."""
    for cross in one.page.get_by_label("Forget the program").all():
        cross.click()


class Page:
    """A page's control channel; beats while `beats` is set."""

    def __init__(self, socket):
        self._socket, self.messages, self.beats = socket, [], threading.Event()
        self.beats.set()
        self.is_closed = False
        for work in (self._receive, self._beat):
            threading.Thread(target=work, daemon=True).start()

    def _receive(self):
        try:
            for text in self._socket:
                self.messages.append(json.loads(text))
        except Exception:
            self.is_closed = True

    def _beat(self):
        while not self.is_closed:
            if self.beats.wait(0.2):
                try:
                    self.send(type="beat", t=time.time())
                except Exception:
                    return
                time.sleep(0.2)

    def send(self, **message):
        if "epoch" in message or message["type"] == "answer_job":
            message = {"stamp": self.all("state")[-1]["stamp"], **message}
        self._socket.send(json.dumps(message))

    def cut(self):
        """Cut the line in the middle of whatever is said."""
        self.beats.clear()
        self._socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.socket.shutdown(socket.SHUT_RDWR)

    def all(self, kind):
        return [one for one in self.messages if one["type"] == kind]

    def wait_for(self, kind, condition=lambda message: True, patience=PATIENCE, since=0):
        """The newest message of a kind for which a condition holds."""
        deadline = time.monotonic() + patience
        while True:
            for message in reversed(self.all(kind)[since:]):
                if condition(message):
                    return message
                if kind == "state":
                    break
            assert time.monotonic() < deadline, f"no such {kind}: {self.all(kind)[-2:]}, {self.all('notice')[-2:]}"
            time.sleep(0.02)

    @property
    def robot(self):
        return self.wait_for("state")["robots"][0]

    @property
    def epoch(self):
        return self.robot["driver"]["epoch"]

    def operate(self):
        self.send(type="operate", take=True)
        self.wait_for("state", lambda state: state["operator"] == "you")

    def drag(self, *points, epoch=None, **more):
        """Want points: (output, u, v, place)."""
        told = [
            {"id": i + 1, "output": output, "u": u, "v": v, "target": list(place)}
            for i, (output, u, v, place) in enumerate(points)
        ]
        self.send(type="points", epoch=epoch or self.epoch, points=told, **more)


@contextmanager
def page_of(address):
    with connect(address.replace("http", "ws") + "/control", origin=address, max_size=None) as socket:
        page = Page(socket)
        page.wait_for("hello")
        page.wait_for("state")
        yield page
