"""Node `console`: parameters, life cycle, and the operator's page."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from softform_console.access import Links, is_loopback, own_names
from softform_console.certificate import certificate
from softform_console.control_channel import ControlChannel
from softform_console.foxglove_bridge import FoxgloveBridge
from softform_console.job_commands import JobCommands
from softform_console.job_desk import JobDesk, job_routes
from softform_console.job_messages import Shelf
from softform_console.job_records import JobStore
from softform_console.job_runner import JobRunner
from softform_console.model_shelf import ASKED, MODEL_NODE, TO_SWITCH, in_use, models_in
from softform_console.neighbours import Neighbours
from softform_console.operator_role import OperatorRole
from softform_console.protocol import Robots, Uploaded
from softform_console.qr_code import qr_code
from softform_console.robot_seat import RobotSeat
from softform_console.robots_desk import EveryDriver, RobotsDesk
from softform_console.run_files import RunFiles
from softform_console.scene_store import SceneStore
from softform_console.server import Routes, ServerThread, bound_socket
from softform_console.stop_request import StopRequests
from softform_core.display import open_in_browser
from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT, models_of, runs_dir
from softform_core.robots import Robot, load_robot
from softform_ros.diagnostics import OK, WARN, Health
from softform_ros.guarded_node import GuardedNode
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter
from softform_ros.service_calls import asked_parameters
from softform_ros.timers import create_steady_timer

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT, "the robot: a name in `config/robots`, or the path of a description"),
    Parameter("host", "127.0.0.1", "address to listen on; beyond this computer (`0.0.0.0`) with TLS and a token"),
    Parameter("port", 8765, "TCP port; the next one that is free is taken, 0: any", 0, 65535),
    Parameter("replays", False, "whether a recording stands in for the robot; the page says so"),
    Parameter("foxglove_port", 0, "port on which Foxglove is served, on this computer alone; 0: none", 0, 65535),
    Parameter("open_page", False, "whether the page is opened in the browser, where there is a display"),
)

_ANSWER_SECONDS = 2.0
_LOOK_SECONDS = 0.2
"""Period of looking whether a page is open, s."""

_NEIGHBOURS_SECONDS = 2.0
"""Period of looking for robots of other stacks, while a page is open, s."""


class ConsoleNode(SoftformLifecycleNode):
    """Serves the operator's page."""

    def __init__(self) -> None:
        super().__init__("console", PARAMETERS, hardware_id="console")
        self._url = ""
        self._foxglove: FoxgloveBridge | None = None

    def configure(self) -> None:
        """Load the robot; open its topics and services."""
        values = self.parameters
        robot = load_robot(values["robot"]).in_namespace(self.get_namespace())
        self._role, self._store = OperatorRole(), SceneStore()
        self._seats: list[RobotSeat] = []
        self._stops = StopRequests(EveryDriver(self._seats), self._forget, self._tell_stopped)
        self._runs, self._models = RunFiles(runs_dir()), models_of(robot.name)
        self._commands = JobCommands(robot.given_as, self.get_namespace(), self._runs.recording)
        self._jobs = JobRunner(JobStore(runs_dir()), self._tell)
        desk = RobotsDesk(self._seats, self._stops)
        self._desk = JobDesk(desk, self._jobs, self._commands, self._check_may_move, values["replays"])
        self._control = ControlChannel(self._desk, self._role, time.time, _version())
        self._seat(self, robot)
        self._neighbours = Neighbours(self, self._on_neighbour)
        self.opened.callback(self._jobs.close)
        self.opened.callback(self._stops.close)
        self.opened.callback(self._close_seats)
        for period, look in ((_LOOK_SECONDS, self._look), (_NEIGHBOURS_SECONDS, self._look_around)):
            self.opened.callback(self.destroy_timer, create_steady_timer(self, period, look))
        self._stops.start()

    def activate(self) -> None:
        """Serve the page, and print where."""
        host, port = self.parameters["host"], self.parameters["port"]
        is_open = not is_loopback(host)
        names = own_names(host)
        self._foxglove = self._opened_foxglove(self.parameters["foxglove_port"])
        files = certificate(_state_folder(), names) if is_open else None
        listening = bound_socket(host, port)
        others = job_routes(self._jobs, self._commands, self._runs, self._shelf)
        shown = max(names - {"localhost", "127.0.0.1", "[::1]"}, default="localhost") if is_open else "127.0.0.1"
        self._url = f"{'https' if is_open else 'http'}://{shown}:{listening.getsockname()[1]}/"
        if not is_open:
            self.get_logger().info(f"the page: {self._url}")
        links = Links(self._print_link) if is_open else None
        self._routes = Routes(
            page_folder(), self._control, self._store, self._stops, self._upload, names, links, others
        )
        self._server = ServerThread(self._routes.app, listening, files)
        if self.parameters["open_page"] and not is_open:  # the token is not for the list of processes
            threading.Thread(target=self._open_page, name="browser", daemon=True).start()

    def deactivate(self) -> None:
        """Serve no more; what a page moved is ended."""
        for seat in self._seats:
            seat.steering.end()
        if self._foxglove is not None:
            self._foxglove.close()
        self._server.close()

    def health(self) -> Health:
        """Say where the page is and who looks."""
        steered = [f"{seat.steering.mode} of {seat.robot.name}" for seat in self._seats if seat.steering.mode != "none"]
        values = {"page": self._url, "pages": self._control.pages, "steering": ", ".join(steered) or "none"}
        is_alive = self._stops.is_alive and all(seat.steering.is_alive for seat in self._seats)
        if self.is_active and not (self._server.is_alive and is_alive):
            return Health(WARN, "a thread of the server has ended; see the log, and start the node again", values)
        return Health(OK, "serving" if self.is_active else "inactive", values)

    def _opened_foxglove(self, port: int) -> FoxgloveBridge | None:
        if port == 0:
            return None
        seat = self._seats[0]
        scalar = "von_mises" if seat.desk.info.holds else "sigma"
        bridge = FoxgloveBridge(
            self._store, lambda: seat.desk.state().model_dump_json(), seat.robot.base_frame, port, scalar
        )
        self.get_logger().info(f"for Foxglove: ws://127.0.0.1:{bridge.port}")
        return bridge

    def _print_link(self, token: str) -> None:
        address = f"{self._url}?token={token}"
        self.get_logger().info(f"the page, for one browser: {address}")
        if code := qr_code(address):
            self.get_logger().info(f"the same for a tablet or headset:\n{code}")

    def _open_page(self) -> None:
        if open_in_browser(self._url):
            self.get_logger().info("the page is opened in the browser; ./softform launch --no-page leaves that out")

    def _seat(self, node: GuardedNode, robot: Robot) -> None:
        """Take a robot, whose stack is in the namespace of a node."""
        folder, index = _state_folder() / "captures", len(self._seats)
        self._seats.append(RobotSeat(node, robot, index, self._role, self._store, folder, self._tell))

    def _on_neighbour(self, namespace: str, robot: Robot) -> None:
        """Take the robot of another stack, in the executor's thread."""
        executor = self.executor
        if executor is None:  # the node ends
            return

        def take() -> None:
            name = f"{self.get_name()}_of{self.get_namespace().replace('/', '_')}"
            node = GuardedNode(name, namespace=namespace, context=self.context, use_global_arguments=False)
            executor.add_node(node)
            self._seat(node, robot)
            self.get_logger().info(f"'{robot.name}' of {namespace} is shown, too")
            self._tell(Robots(robots=self._desk.hello()))

        executor.create_task(take)

    def _close_seats(self) -> None:
        while self._seats:
            seat = self._seats.pop()
            seat.close()
            if seat.node is not self:
                if self.executor is not None:
                    self.executor.remove_node(seat.node)
                seat.node.destroy_node()

    def _upload(self, robot: int, name: str, unit: str, content: bytes) -> Uploaded:
        if not 0 <= robot < len(self._seats):
            known = ", ".join(f"{index} ({seat.robot.title})" for index, seat in enumerate(self._seats))
            raise SoftformError("It is not said for which robot the file is.", f"Give robot=N, one of {known}.")
        return self._seats[robot].targets.upload(name, unit, content)

    def _check_may_move(self, epoch: int) -> None:
        self._seats[0].link.check_epoch(epoch)
        if self._seats[0].robot.body.held is not None:
            raise SoftformError(
                "These arms hold an object, and no job that moves them looks at its stress.",
                "Take the object out, and run the command at a terminal.",
            )
        if any(seat.steering.mode != "none" for seat in self._seats):
            raise SoftformError("The robot is steered from here.", "Let go of it first.")

    def _shelf(self) -> Shelf:
        return Shelf(
            recordings=self._runs.recordings(),
            models=models_in(self._models),
            in_use=in_use(lambda: asked_parameters(self, MODEL_NODE, ASKED, _ANSWER_SECONDS)),
            to_switch=TO_SWITCH,
        )

    @property
    def _is_watched(self) -> bool:
        return self._control.pages > 0 or (self._foxglove is not None and self._foxglove.is_watched)

    def _look(self) -> None:
        for seat in self._seats:
            seat.look(self._is_watched)

    def _look_around(self) -> None:
        if self._is_watched:
            self._neighbours.look()

    def _forget(self) -> None:
        for seat in self._seats:
            try:
                seat.steering.forget()
            except Exception as error:  # the others are to be forgotten all the same
                self.get_logger().error(f"'{seat.robot.title}' is steered on: {error}")

    def _tell_stopped(self, result: object) -> None:
        self._routes.tell_stopped(result)  # type: ignore[arg-type]

    def _tell(self, message: object) -> None:
        self._control.tell(message)  # type: ignore[arg-type]


def page_folder() -> Path:
    """Return the folder of the built page: of the checkout, else of the installed package."""
    places = [Path(__file__).resolve().parents[1] / "dist"]
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        places.append(Path(prefix) / "share" / "softform_console" / "dist")
    return next((place for place in places if (place / "index.html").is_file()), places[0])


def _state_folder() -> Path:
    """Return where the certificate of this installation is kept."""
    usual = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state" / "softform"
    return Path(os.environ.get("SOFTFORM_STATE") or usual) / "console"


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError):
        return version("softform_console")
    return ""


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    run_node(ConsoleNode)


if __name__ == "__main__":
    main()
