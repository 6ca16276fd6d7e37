"""`softform bench console`: what the operator's page costs, and how late it is."""

import json
import math
import re
import struct
import subprocess
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil
from std_srvs.srv import Trigger
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from softform_core.cli.shared import json_option, report_figures
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.run_folder import new_run_folder
from softform_interfaces.msg import DriverState, MeshTopology, PredictedMesh, ServoState
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import nanoseconds_from_stamp
from softform_ros.stack_state import wait_until_active
from softform_studies.console.bench_browser import picture_figures, skin_figures, steering_figures
from softform_studies.console.bench_skin import SKIN, skinned
from softform_studies.console.browser import chromium
from softform_studies.console.page_picture import draw_page
from softform_studies.console.slow_line import SlowLine

SIDE, RATE = 60, 30.0
"""Points a side of the mesh, and meshes a second, Hz."""

_ALONE = """<launch>
  <push_ros_namespace namespace="softform"/>
  <node pkg="softform_console" exec="console_node" name="console" output="screen"><param name="port" value="0"/></node>
  <node pkg="softform_bringup" exec="bringup_manager_node" name="bringup_manager" output="screen" on_exit="shutdown">
    <param name="nodes" value="console," value-sep=","/>
  </node>
</launch>
"""
_START_SECONDS = 90.0
_STOPS, _DRAGS = 20, 40
_S_PER_NS = 1e-9


@click.command()
@click.option("--seconds", default=8.0, show_default=True, type=click.FloatRange(2.0), help="Of each measurement.")
@click.option(
    "--browsers/--no-browsers", default=True, show_default=True, help="Also what needs chromium and Playwright."
)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Only draw the page there (PNG).")
@json_option
def console(seconds: float, browsers: bool, picture: Path | None, json_path: str | None) -> None:
    """Measure the console's share of a core, age of its pictures on 1 Mbit/s, and times of stops and commands.

    Meshes of 60 x 60 points come at 30 Hz. The share of ROS, with a page that sees no pictures, is stated apart. In
    chromium: first picture, picks, those on a skin of 100 000 triangles, pointer to server, and the driver's deadlines
    with four browsers and with none.
    """
    if browsers or picture:
        with chromium():  # says now what is missing
            pass
    enter_domain_of_its_own()
    folder = new_run_folder("bench_console")
    if picture:
        with _launched("softform", {"run_dir": str(folder / "stack")}, folder / "stack.log") as (address, _):
            draw_page(address, "sheet", picture)
        click.echo(f"drawn: {picture}")
        return
    figures: dict[str, object] = {}
    launch_file = folder / "alone.launch.xml"
    launch_file.write_text(_ALONE, encoding="utf-8")
    with _launched(launch_file, {}, folder / "alone.log") as (address, process), _Feed():
        figures.update(_shares(address, process, seconds))
        figures.update(_slow(address, seconds))
        if browsers:
            figures.update(picture_figures(address))
    if browsers:
        with (
            skinned(folder / "skinned", SIDE * SIDE),
            _launched(launch_file, {}, folder / "skinned.log") as (address, _),
            _Feed(),
        ):
            figures.update(skin_figures(address, SKIN))
    with _launched("softform", {"run_dir": str(folder / "stack")}, folder / "stack.log") as (address, _):
        figures.update(_drags(address))
        if browsers:
            steered = steering_figures(
                address, seconds, lambda: _steering(address), lambda pages: _watching(address, pages, True)
            )
            asked = int(str(figures["outside_requests"])) + int(str(steered["outside_requests"]))
            figures.update({**steered, "outside_requests": asked})
    report_figures(figures, json_path or "-")


@contextmanager
def _launched(file: Path | str, arguments: dict[str, str], log: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Launch a file with a console; yields its address and process."""
    with log.open("wb") as output, LaunchedStack(file, arguments, output) as launch:
        wait_until_active("softform", _START_SECONDS, lambda: launch.exit_code is not None)
        found = re.findall(r"the page: http://([\d.:]+)/", log.read_text(encoding="utf-8", errors="replace"))
        assert isinstance(launch.process, subprocess.Popen)
        nodes = psutil.Process(launch.process.pid).children(recursive=True)
        process = next(one for one in nodes if any("console_node" in word for word in one.cmdline()))
        yield found[-1], process
        launch.stop()


class _Feed:
    """A predictor and a driver that publish as fast as is asked, while the `with` block lasts."""

    def __enter__(self) -> "_Feed":
        self._background = BackgroundNode("feed", "softform")
        node = self._background.__enter__()
        robot = load_robot("membrane")
        triangles = robot.patches.triangles(SIDE * SIDE).astype(np.uint32)
        topologies = node.create_publisher(MeshTopology, "predicted_topology", qos.LATCHED_STATE)
        topologies.publish(
            MeshTopology(
                id=1, output=["sheet"], vertices=[SIDE * SIDE], triangles=array("I", triangles.ravel().tobytes())
            )
        )
        self._meshes = node.create_publisher(PredictedMesh, "predicted_mesh", qos.PREDICTED_SURFACE)
        self._states = node.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        node.create_service(Trigger, "stop", lambda asked, answer: Trigger.Response(success=True))
        self._uv, self._node = robot.patches.samples(SIDE * SIDE), node
        self._ends, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._thread.join()
        self._background.close()

    def _run(self) -> None:
        deadline = time.monotonic()
        while not self._ends.wait(max(0.0, deadline - time.monotonic())):
            deadline += 1.0 / RATE
            height = 0.03 * np.sin(6.0 * self._uv.sum(axis=1) + 2.0 * deadline)
            points = np.column_stack([0.32 * self._uv, height]).astype("<f4")
            stamp = self._node.get_clock().now().to_msg()
            mesh = PredictedMesh(topology=1, scalar="sigma", vertices=array("f", points.tobytes()))
            mesh.values, mesh.header.stamp = array("f", np.abs(height).astype("<f4").tobytes()), stamp
            self._meshes.publish(mesh)
            state = DriverState(state=DriverState.SAFE, epoch=1, at_rest=[True], acknowledged=[True])
            state.header.stamp = stamp
            self._states.publish(state)


@contextmanager
def _socket(address: str, path: str, origin: str = "") -> Iterator[ClientConnection]:
    told = Origin(f"http://{origin or address}")
    with connect(f"ws://{address}{path}", origin=told, max_size=None, legacy=True) as one:
        yield one


def _in_background(work: Callable[[], object]) -> None:
    """Do something beside until its socket is closed."""

    def quietly() -> None:
        with suppress(ConnectionClosed, OSError):
            work()

    threading.Thread(target=quietly, daemon=True).start()


@contextmanager
def _watching(address: str, pages: int, pictures: bool, origin: str = "") -> Iterator[list[float]]:
    """Open pages that take whatever comes; yields the age of each picture when it came, s."""
    ages: list[float] = []

    def take(scene: ClientConnection) -> None:
        for frame in scene:
            kind, (stamp,) = frame[4], struct.unpack("<d", frame[16:24])  # type: ignore[arg-type]
            if kind == 2 and not frame[6] & 1:  # type: ignore[operator]
                ages.append(time.time() - stamp)
            scene.send(frame[12:16])

    with ExitStack() as stack:
        for _ in range(pages):
            control = stack.enter_context(_socket(address, "/control", origin))
            _in_background(lambda control=control: [None for _ in control])  # type: ignore[misc]
            if pictures:
                scene = stack.enter_context(_socket(address, "/scene", origin))
                _in_background(lambda scene=scene: take(scene))  # type: ignore[misc]
        yield ages


def _shares(address: str, process: psutil.Process, seconds: float) -> dict[str, object]:
    """Return the server's shares of a core, per cent: ROS alone, and with one and four pages beyond that."""
    found = []
    for pages, pictures in ((1, False), (1, True), (4, True)):
        with _watching(address, pages, pictures):
            time.sleep(3.0)
            before = sum(process.cpu_times()[:2])
            time.sleep(seconds)
            found.append(100.0 * (sum(process.cpu_times()[:2]) - before) / seconds)
    ros, one, four = found
    return {
        "ros_core_share": round(ros, 1),
        "server_core_share_1": round(one - ros, 1),
        "server_core_share_4": round(four - ros, 1),
    }


def _slow(address: str, seconds: float) -> dict[str, object]:
    """Return ages of pictures and times of stops on a line of 1 Mbit/s, 20 ms long."""
    times = []
    with SlowLine(int(address.rsplit(":", 1)[1])) as line:
        slow = f"127.0.0.1:{line.port}"
        with _watching(slow, 1, True) as ages, _socket(slow, "/stop") as stop:
            time.sleep(6.0)  # the level is found
            ages.clear()
            time.sleep(seconds)
            for _ in range(_STOPS):
                begun = time.monotonic()
                stop.send("stop")
                while json.loads(stop.recv(10.0))["stage"] != "confirmed":
                    pass
                times.append(time.monotonic() - begun)
            if not ages:
                raise SoftformError("No picture came over the slow line.", "See the log of the launch.")
    return {
        "age_s_median": round(float(np.median(ages)), 3),
        "age_s_max": round(max(ages), 3),
        "stop_confirmed_ms_p95": round(1e3 * float(np.percentile(times, 95)), 1),
    }


def _drags(address: str) -> dict[str, object]:
    """Return how long it takes from a page's sending of a point to the command that answers it, on the stack."""
    states: list[ServoState] = []
    with BackgroundNode("observer", "softform") as node, _socket(address, "/control") as control:
        node.create_subscription(ServoState, "servo_state", states.append, qos.SERVO_STATE)
        epoch = _epoch(control)
        stamps = [0.0]
        _in_background(lambda: _note_stamps(control, stamps))
        _in_background(lambda: _beat(control))
        control.send('{"type":"operate","take":true}')
        times = []
        for number in range(_DRAGS):
            height = 0.02 + 0.0005 * (number % 10)
            point: dict[str, Any] = {"id": 1, "output": "sheet", "u": 0.5, "v": 0.5, "target": [0.0, 0.0, height]}
            begun = time.time()
            _send_point(control, epoch, stamps[-1], point)
            deadline = begun + 5.0
            while not (answer := _answer(states, begun)) and time.time() < deadline:
                time.sleep(0.001)
            if answer and number:  # the first one also gets the lease
                times.append(answer - begun)
            time.sleep(0.11 + 0.003 * (number % 7))
        missed = states[-1].deadlines_missed if states else 0
    if not times:
        raise SoftformError("No command answered a point.", "See the log of the stack.")
    return {
        "server_to_command_ms_median": round(1e3 * float(np.median(times)), 1),
        "server_to_command_ms_p95": round(1e3 * float(np.percentile(times, 95)), 1),
        "servo_deadlines_missed": int(missed),
    }


@contextmanager
def _steering(address: str) -> Iterator[None]:
    """A page that moves a point up and down, 20 times a second, while the `with` block lasts."""
    ends = threading.Event()
    with _socket(address, "/control") as control:
        epoch = _epoch(control)

        def move() -> None:
            while not ends.wait(0.05):
                target = [0.0, 0.0, 0.02 + 0.01 * math.sin(2.0 * time.monotonic())]
                point: dict[str, Any] = {"id": 1, "output": "sheet", "u": 0.5, "v": 0.5, "target": target}
                _send_point(control, epoch, stamps[-1], point)

        stamps = [0.0]
        _in_background(lambda: _note_stamps(control, stamps))
        _in_background(lambda: _beat(control))
        control.send('{"type":"operate","take":true}')
        _in_background(move)
        try:
            yield
        finally:
            ends.set()


def _send_point(control: ClientConnection, epoch: str, stamp: float, point: dict[str, Any]) -> None:
    control.send(json.dumps({"type": "points", "epoch": epoch, "stamp": stamp, "points": [point]}))


def _note_stamps(control: ClientConnection, stamps: list[float]) -> None:
    """Keep the stamps of the states that are told until the socket is closed."""
    for text in control:
        message = json.loads(text)
        if message["type"] == "state":
            stamps.append(message["stamp"])


def _beat(control: ClientConnection) -> None:
    """Beat until the socket is closed."""
    while True:
        control.send('{"type":"beat","t":0}')
        time.sleep(0.2)


def _answer(states: list[ServoState], since: float) -> float | None:
    """Return when the first command was sent that answers a target stamped later, s since the epoch."""
    later = [one for one in states if nanoseconds_from_stamp(one.target) * _S_PER_NS >= since]
    return nanoseconds_from_stamp(later[0].header.stamp) * _S_PER_NS if later else None


def _epoch(control: ClientConnection) -> str:
    """Return the driver's epoch once the robot is safe."""
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        message = json.loads(control.recv(5.0))
        if message["type"] == "state" and message["robots"][0]["driver"]["state"] == "safe":
            return str(message["robots"][0]["driver"]["epoch"])
    raise SoftformError("The robot did not become safe.", "See the log of the stack.")
