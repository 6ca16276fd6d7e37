"""Robots of two stacks on one page: both are shown, one at a time is steered, and a stop stops both."""

import struct
import time

import numpy as np
import pytest
from console_pages import hill, page_of, uploaded
from websockets.sync.client import connect

from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_launch.launched_stack import LaunchedStack
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.stack_state import wait_until_active

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]
SPACE = "neighbour"


class Neighbour:
    """What the other stack's driver says, and what it is commanded."""

    def __init__(self, node):
        self.states, self.commands = [], []
        node.create_subscription(DriverState, "driver_state", self.states.append, qos.LATCHED_STATE)
        node.create_subscription(ActuatorCommand, "actuator_command", self.commands.append, qos.ACTUATOR_COMMAND_LOG)


@pytest.fixture
def neighbour(stack, tmp_path):
    arguments = {"run_dir": str(tmp_path), "namespace": SPACE, "console": "false"}
    with (tmp_path / "launch.log").open("wb") as log, LaunchedStack("softform", arguments, output=log) as launch:
        wait_until_active(SPACE, 90.0, lambda: launch.exit_code is not None)
        with BackgroundNode("observer", f"/{SPACE}") as node:
            yield Neighbour(node)
        launch.stop()


def indices_shown(address, seconds):
    """Robots of which the scene has meshes."""
    found, deadline = set(), time.monotonic() + seconds
    with connect(address.replace("http", "ws") + "/scene", origin=address, max_size=None) as scene:
        while time.monotonic() < deadline and found != {0, 1}:
            frame = scene.recv(timeout=seconds)
            scene.send(frame[12:16])
            if frame[4] == 2:
                found |= set(struct.unpack("<H", frame[8:10]))
    return found


def test_two_robots_are_shown_and_one_at_a_time_is_steered(neighbour, observer, address, tmp_path):
    with page_of(address) as page:
        told = page.wait_for("robots", lambda one: len(one["robots"]) == 2)
        assert [one["index"] for one in told["robots"]] == [0, 1]
        assert told["robots"][1]["frame"].startswith(f"{SPACE}/") or told["robots"][1]["name"] == "membrane"
        page.wait_for("state", lambda state: [one["driver"]["state"] for one in state["robots"]] == ["safe", "safe"])
        with page_of(address) as later:
            assert len(later.wait_for("hello")["robots"]) == 2
        assert indices_shown(address, 20.0) == {0, 1}
        page.operate()

        target = uploaded(address, hill(observer, tmp_path / "target.ply"), robot=1)["id"]
        page.send(type="preview", robot=1, target=target, pose="fixed")
        assert page.wait_for("previewed")["robot"] == 1
        page.send(type="preview", robot=0, target=target, pose="fixed")
        assert "another robot" in page.wait_for("notice", lambda one: one["about"] == "preview")["text"]
        page.send(type="reach", epoch=page.epoch, target=target, pose="fixed", mode="move")
        assert "another robot" in page.wait_for("notice", lambda one: one["about"] == "reach")["text"]
        assert "for which robot" in uploaded(address, tmp_path / "target.ply", robot="")["message"]

        epoch = page.wait_for("state")["robots"][1]["driver"]["epoch"]
        page.send(type="reach", robot=1, epoch=epoch, target=target, pose="fixed", mode="move")
        reached = page.wait_for("goal_result", patience=60.0)
        assert (reached["robot"], reached["error_code"]) == (1, 0), reached["text"]
        assert neighbour.commands[-1].source == "inverse_kinematics" and not observer.commands
        page.send(type="release", robot=1)
        page.wait_for("state", lambda state: state["robots"][1]["driver"]["state"] == "safe")
        neighbour.commands.clear()
        epoch = page.wait_for("state")["robots"][1]["driver"]["epoch"]
        assert epoch != page.epoch and not observer.commands
        values = [700.0 + 100.0 * number for number in range(9)]
        page.send(type="actuators", robot=1, epoch=epoch, values=values)
        observer.wait_for(lambda: neighbour.commands, "commands of the other robot")
        assert list(neighbour.commands[-1].value) == values and neighbour.commands[-1].source == "console_of_softform"
        page.wait_for(
            "state", lambda state: np.allclose(state["robots"][1]["measured"] or [0.0] * 9, values, atol=300.0)
        )
        assert [one["steering"] for one in page.wait_for("state")["robots"]] == ["none", "manual"]
        page.drag(("sheet", 0.5, 0.5, (0.0, 0.0, 0.03)))
        assert "is steered from here" in page.wait_for("notice", lambda one: one["about"] == "points")["text"]
        assert not observer.commands

        with page_of(address) as watcher:
            watcher.send(type="stop")
            assert watcher.wait_for("stopped", lambda one: one["stage"] == "confirmed")["seconds"] < 10.0
        assert observer.state == DriverState.FAULT and all(observer.driver[-1].at_rest)
        assert neighbour.states[-1].state == DriverState.FAULT and all(neighbour.states[-1].at_rest)
        states = page.wait_for("state", lambda state: all(one["driver"]["stopped"] for one in state["robots"]))
        page.send(type="reset", robot=1, epoch=states["robots"][1]["driver"]["epoch"])
        observer.wait_for(lambda: neighbour.states[-1].state == DriverState.SAFE, "the other one's reset")
        assert observer.state == DriverState.FAULT, "which is that of one robot"
        page.send(type="actuators", robot=7, epoch=epoch, values=values)
        assert "no robot of index 7" in page.wait_for("notice", lambda one: "index 7" in one["text"])["text"]
