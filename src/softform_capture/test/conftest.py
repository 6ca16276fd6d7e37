"""A capture node as its own process, and a ROS node that listens to it and changes its state."""

import os
import random
import subprocess
import sys
import threading
import time

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor

from softform_ros import qos

PATIENCE = 30.0


class NodeProcess:
    """The process of node `name` of `module`, with these parameters; `output` is collected in `messages`."""

    def __init__(self, module, name, output, **parameters):
        kind, topic, profile = output
        self._topic = topic
        domain = 1 + random.Random(os.getpid()).randrange(100)
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("listener", namespace="/softform", context=self.context)
        self.messages, self.statuses = [], []
        self.node.create_subscription(kind, topic, self.messages.append, profile)
        self.node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda message: self.statuses.extend(message.status), qos.DIAGNOSTICS
        )
        self._change_state = self.node.create_client(ChangeState, f"{name}/change_state")
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._ended = threading.Event()
        self._spinner = threading.Thread(target=self._spin, daemon=True)
        self._spinner.start()
        arguments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--ros-args", "-r", "__ns:=/softform", *arguments],
            env=dict(os.environ, ROS_DOMAIN_ID=str(domain)),
        )
        assert self._change_state.wait_for_service(PATIENCE)

    def _spin(self):
        while not self._ended.is_set():
            self._executor.spin_once(timeout_sec=0.05)

    def change(self, transition):
        return self._change_state.call(ChangeState.Request(transition=Transition(id=transition))).success

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
        self._ended.set()
        self._spinner.join()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def start_process():
    started = []

    def start(*arguments, **parameters):
        started.append(NodeProcess(*arguments, **parameters))
        return started[-1]

    yield start
    for process in started:
        process.close()
