"""A capture node as its own process, and a ROS node that listens to it and changes its state."""

import subprocess
import sys
import time

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_service

PATIENCE = 30.0


class NodeProcess:
    """The process of node `name` of `module`, with these parameters; `output` is collected in `messages`."""

    def __init__(self, module, name, output, **parameters):
        kind, topic, profile = output
        self._topic = topic
        self._name = name
        self._background = BackgroundNode("listener", "/softform")
        self.node = self._background.__enter__()
        self.messages, self.statuses = [], []
        self.node.create_subscription(kind, topic, self.messages.append, profile)
        self.node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda message: self.statuses.extend(message.status), qos.DIAGNOSTICS
        )
        arguments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--ros-args", "-r", "__ns:=/softform", *arguments],
        )

    def change(self, transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        return call_service(self.node, self._name, ChangeState, f"{self._name}/change_state", request, PATIENCE).success

    def start(self):
        assert self.change(Transition.TRANSITION_CONFIGURE)
        assert self.change(Transition.TRANSITION_ACTIVATE)
        self.wait(lambda: self.node.count_publishers(self._topic) == 1)

    def wait(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, [s.message for s in self.statuses[-3:]]
            assert self.process.poll() is None
            time.sleep(0.02)

    def wait_for_status(self, words):
        """The next status whose message has these words; returns it with its values."""
        seen = len(self.statuses)
        self.wait(lambda: any(words in status.message for status in self.statuses[seen:]))
        status = next(status for status in self.statuses[seen:] if words in status.message)
        return status, {pair.key: pair.value for pair in status.values}

    def close(self):
        self.process.kill()
        self.process.wait()
        self._background.close()


@pytest.fixture
def start_process():
    started = []

    def start(*arguments, **parameters):
        started.append(NodeProcess(*arguments, **parameters))
        return started[-1]

    yield start
    for process in started:
        process.close()


class SheetCamera:
    """A pin-hole camera that looks at the printed sheet of codes, which lies in z = 0 about the origin; what it sees.

    Args:
        eye: (3,) m.
        target: (3,) m, in the middle of the image.
        size: Width and height of the image, pixels.
        focal_length: Pixels.
    """

    _FINER = 2

    def __init__(self, eye, target=(0.0, 0.0, 0.0), size=(1280, 720), focal_length=920.0):
        forward = np.asarray(target, dtype=float) - eye
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 1.0, 0.0])
        right /= np.linalg.norm(right)
        self.rotation = np.stack([right, np.cross(forward, right), forward])  # robot to camera: x right, y down
        self.eye, self.size = np.asarray(eye, dtype=float), size
        middle = (np.array(size) - 1.0) / 2.0
        self.matrix = np.array([[focal_length, 0.0, middle[0]], [0.0, focal_length, middle[1]], [0.0, 0.0, 1.0]])

    def project(self, points):
        """Pixels (N, 2) of points (N, 3) m."""
        seen = (np.asarray(points) - self.eye) @ self.rotation.T @ self.matrix.T
        return seen[:, :2] / seen[:, 2:]

    def picture(self, sheet, discs=(), blur=0.8, noise=3.0, exposure=1.0, seed=0):
        """BGR image of the sheet on a grey table, of discs (centre (3,) m, diameter m, BGR), lit from the left."""
        finer = np.diag([self._FINER, self._FINER, 1.0])
        finer[:2, 2] = (self._FINER - 1.0) / 2.0
        drawing = sheet.drawing()
        height, width = drawing.shape
        to_plane = np.array(
            [[1e-4, 0.0, (0.5 - width / 2) * 1e-4], [0.0, -1e-4, (height / 2 - 0.5) * 1e-4], [0.0, 0.0, 1.0]]
        )
        offset = -self.rotation @ self.eye
        view = finer @ self.matrix @ np.column_stack([self.rotation[:, 0], self.rotation[:, 1], offset])
        shape = tuple(self._FINER * n for n in self.size)
        small = cv2.resize(drawing, (width // 4, height // 4), interpolation=cv2.INTER_AREA)
        enlarge = np.diag([width / small.shape[1], height / small.shape[0], 1.0])
        enlarge[:2, 2] = (np.diag(enlarge)[:2] - 1.0) / 2.0
        image = cv2.warpPerspective(small, view @ to_plane @ enlarge, shape, flags=cv2.INTER_LINEAR, borderValue=110)
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
        angle = np.linspace(0.0, 2.0 * np.pi, 90, endpoint=False)
        circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(90)], axis=1) / 2.0
        for centre, diameter, colour in discs:
            outline = self.project(np.asarray(centre) + diameter * circle) * self._FINER + finer[0, 2]
            cv2.fillConvexPoly(image, np.round(outline * 16).astype(np.int32), colour, cv2.LINE_AA, shift=4)
        image = cv2.resize(image, self.size, interpolation=cv2.INTER_AREA).astype(np.float32)
        image = cv2.GaussianBlur(image, (0, 0), blur) if blur > 0.0 else image
        image *= exposure * np.linspace(1.0, 0.75, self.size[0], dtype=np.float32)[None, :, None]
        image += noise * np.random.default_rng(seed).standard_normal(image.shape, dtype=np.float32)
        return np.clip(image, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def sheet_camera():
    return SheetCamera
