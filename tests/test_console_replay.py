"""A recording is replayed from the page, beside `launch replay`: what was measured then is seen, and nothing moves."""

import http.client
import json
import re
import time
from urllib.parse import urlsplit

import pytest
from console_pages import page_of
from rclpy.serialization import serialize_message
from std_msgs.msg import Header

from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorState, PredictedMesh
from softform_launch.launched_stack import LaunchedStack
from softform_recording.bag_recorder import BagRecorder
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import stamp_from_seconds
from softform_ros.qos import PREDICTED_SURFACE
from softform_ros.stack_state import wait_until_active

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]
SECONDS, RATE = 60, 20.0
VALUES = [500.0 * (1 + chamber) for chamber in range(9)]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of runs with a recording of a robot that holds the same values."""
    bag = BagRecorder(tmp_path / "bags" / "walk")
    bag.add_topic("/softform/actuator_state", "softform_interfaces/msg/ActuatorState")
    for number in range(int(SECONDS * RATE)):
        moment = 1000.0 + number / RATE
        state = ActuatorState(name=load_robot("membrane").actuators, value=VALUES, status=[3] * 9)
        state.header = Header(stamp=stamp_from_seconds(moment), frame_id="membrane_base")
        bag.write("/softform/actuator_state", int(1e9 * moment), serialize_message(state))
    bag.flush()
    bag.close()
    monkeypatch.setenv("SOFTFORM_RUNS", str(tmp_path))
    return tmp_path


def got(address, path):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20.0)
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def until(found, what):
    deadline = time.monotonic() + 60.0
    while not (value := found()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return value


def test_a_recording_is_replayed_from_the_page(runs):
    log = runs / "launch.log"
    with log.open("wb") as output, LaunchedStack("replay", output=output) as launch:
        wait_until_active("softform", 90.0, lambda: launch.exit_code is not None)
        address = re.findall(r"the page: (http://\S+)/", log.read_text())[-1]
        (recording,) = got(address, "/shelf")["recordings"]
        assert recording["messages"] == SECONDS * RATE and recording["seconds"] == pytest.approx(SECONDS, abs=0.1)
        meshes = []
        with BackgroundNode("observer", "softform") as node, page_of(address) as page:
            node.create_subscription(PredictedMesh, "predicted_mesh", meshes.append, PREDICTED_SURFACE)
            assert page.all("hello")[0]["robots"][0]["title"].endswith("(a recording, not the robot)")
            page.operate()
            page.send(
                type="start_job", epoch=page.epoch, command="replay", arguments=[recording["path"], "--rate", "2"]
            )
            until(lambda: page.robot["measured"] == VALUES, "the recorded values on the page")
            until(lambda: meshes, "a predicted mesh")
            job = until(lambda: (one := got(address, "/jobs")["jobs"][0])["done"] and one, "progress")
            assert job["state"] == "running" and job["step"].endswith(" of 60 s")
            page.send(type="cancel_job", id=job["id"])
            job = until(lambda: (one := got(address, "/jobs")["jobs"][0])["ended"] and one, "the end")
            assert job["state"] == "cancelled" and "replayed until it was stopped" in job["text"]
