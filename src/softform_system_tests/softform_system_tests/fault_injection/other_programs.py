"""Programs beside the stack: what they send ends nothing, and neither they nor another driver get at its robot."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from builtin_interfaces.msg import Time
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.serialization import serialize_message

from softform_bringup.lifecycle_manager import State, Step
from softform_bringup.remote_lifecycle import RemoteLifecycleNode
from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorCommand, Asked
from softform_interfaces.srv import Lease
from softform_ros.service_calls import call_service
from softform_system_tests.fault_injection.command_faults import wrong_command
from softform_system_tests.fault_injection.fault_class import injects, rejects, undisturbed
from softform_system_tests.fault_injection.outcome import Outcome, judged
from softform_system_tests.fault_injection.rig_stack import DRIVER, LIFECYCLE_NODES, RigStack
from softform_system_tests.fault_injection.stack_watch import wait_for

_ANSWER_SECONDS = 10.0
_START_SECONDS = 30.0
_BESIDE = "/beside"
_SPACE = "__ns:="
_NO_TYPE = 200
_IMPOSSIBLE = (200, int(Step.CONFIGURE), int(Step.CLEANUP), int(Step.ACTIVATE))  # of a node that is active
_REPEATS = 20
_UGLY = "\x1b]0;owned\x07\u202e\x00" + 10_000 * "a"


@injects("other robot", "a command", "a lease", "a lease for no robot")
def _other_robot(stack: RigStack, variant: str) -> Outcome:
    """Command, or ask to, for another robot whose chambers have the same names."""
    began = time.monotonic()
    if variant == "a command":
        return rejects(stack, lambda: _publish_wrong(stack, "for another robot"))
    other = load_robot("compressible").command_fingerprint() if variant == "a lease" else ""
    answer = stack.watch.ask_for_lease("stranger", _ANSWER_SECONDS, fingerprint=other)
    is_rejected = answer is not None and answer.error_code == Lease.Response.OTHER_ROBOT
    return undisturbed(stack, began, answer.message if answer is not None and is_rejected else None)


def _publish_wrong(stack: RigStack, variant: str) -> None:
    for _ in range(_REPEATS):
        stack.watch.commands.publish(wrong_command(stack.robot, variant, stack.watch.command, time.time()))
        time.sleep(1.0 / _REPEATS)


def _hostile(stack: RigStack, variant: str) -> Outcome:
    """Send it, and see that every node is still there and answers."""
    before, began = {name: each.pid for name, each in stack.processes.nodes().items()}, time.monotonic()
    _HOSTILE[variant](stack)
    ended = [
        name for name, pid in before.items() if name not in (now := stack.processes.nodes()) or now[name].pid != pid
    ]
    dead = [name for name in LIFECYCLE_NODES if stack.life_cycle(name).state(_ANSWER_SECONDS) is not State.ACTIVE]
    if ended or dead:
        return judged(f"ended: {', '.join(ended)}; without an answer: {', '.join(dead)}", hung=bool(dead))
    return undisturbed(stack, began, "all nodes go on and answer")


def _old_stamps(stack: RigStack) -> None:
    stamp = Time(sec=-1, nanosec=4_000_000_000)
    command = wrong_command(stack.robot, "without a stamp", stack.watch.command, 0.0)
    command.header.stamp = stamp
    stack.watch.commands.publish(command)
    asked = Asked(stamp=stamp, epoch=stack.watch.driver.epoch)
    stack.watch.ask_for_lease("stranger", _ANSWER_SECONDS, asked)
    stack.watch.reset(asked, _ANSWER_SECONDS)


def _no_type(stack: RigStack) -> None:
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=1.0)
    value.type = _NO_TYPE
    request = SetParameters.Request(parameters=[Parameter(name="robot", value=value)])
    for name in LIFECYCLE_NODES:
        call_service(stack.watch.node, name, SetParameters, f"{name}/set_parameters", request, _ANSWER_SECONDS)


def _impossible_transitions(stack: RigStack) -> None:
    for name in LIFECYCLE_NODES:
        for number in _IMPOSSIBLE:
            request = ChangeState.Request()
            request.transition.id = number
            call_service(stack.watch.node, name, ChangeState, f"{name}/change_state", request, _ANSWER_SECONDS)


def _ugly_texts(stack: RigStack) -> None:
    stack.watch.ask_for_lease(_UGLY, _ANSWER_SECONDS)
    stack.watch.ask_for_lease("stranger", _ANSWER_SECONDS, fingerprint=_UGLY)
    names = [_UGLY] * len(stack.robot.actuators)
    stack.watch.commands.publish(ActuatorCommand(source=_UGLY, fingerprint=_UGLY, name=names, unit=names))


def _no_messages(stack: RigStack) -> None:
    right = serialize_message(ActuatorCommand(source="stranger"))
    for data in (b"", right[:7], right.replace(b"stranger", 8 * b"\xff"), right[:4] + 60 * b"\xff"):
        stack.watch.commands.publish(data)


_HOSTILE: Mapping[str, Callable[[RigStack], Any]] = {
    "stamps before 1970": _old_stamps,
    "a parameter of no type": _no_type,
    "impossible transitions": _impossible_transitions,
    "texts that turn and colour a terminal": _ugly_texts,
    "bytes that are no message": _no_messages,
}
injects("hostile messages", *_HOSTILE)(_hostile)


def _configured_beside(stack: RigStack, robot: str, port: Path) -> bool | None:
    """Whether another driver can be configured, in a namespace of its own; None without an answer."""
    words = [
        f"{_SPACE}{_BESIDE}" if word.startswith(_SPACE) else word for word in stack.processes.described(DRIVER).command
    ]
    process = stack.processes.start([*words, "-p", f"robot:={robot}", "-p", f"port:={port}"])
    try:
        node = RemoteLifecycleNode(stack.watch.node, f"{_BESIDE}/{DRIVER}", lambda name: "", lambda: False)
        if not wait_for(node.is_there, _START_SECONDS):
            raise SoftformError("The other driver did not start.", "See the launch's log.")
        return node.change(Step.CONFIGURE, _START_SECONDS)
    finally:
        process.terminate()
        process.wait()


def _other_driver(stack: RigStack, variant: str) -> Outcome:
    """Start another driver for the same board, or another launch, while the robot moves."""
    port, began = stack.folder / "openpneu", time.monotonic()
    if variant in _LAUNCHES:
        return undisturbed(stack, began, _launch_refused(stack, *_LAUNCHES[variant]))
    if variant == "by another name of the port":
        other = stack.folder / "other_name"
        other.unlink(missing_ok=True)
        other.symlink_to(os.path.realpath(port))
        port = other
    elif variant == "by the device itself":
        port = port.resolve()
    is_configured = _configured_beside(stack, stack.robot.name, port)
    return undisturbed(stack, began, None if is_configured else "the other driver cannot be configured")


def _launch_refused(stack: RigStack, arguments: tuple[str, ...], network: bool, reason: str) -> str | None:
    """What another launch says that is refused; None if it is not, or for another reason."""
    log = stack.folder / "launch.log"
    before = log.stat().st_size
    words = [sys.executable, "-m", "softform_launch.cli_launch", *arguments]
    reach = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "FASTRTPS_DEFAULT_PROFILES_FILE": ""} if network else {}
    process = stack.processes.start(words, **reach)
    try:
        if not wait_for(lambda: process.poll() is not None, _START_SECONDS) or not process.returncode:
            return None
    finally:
        process.terminate()
        process.wait()
    told = log.read_bytes()[before:].decode(errors="replace").splitlines()
    return next((line for line in told if reason in line), None)


_LAUNCHES: Mapping[str, tuple[tuple[str, ...], bool, str]] = {
    "by a second launch": (("softform",), False, "already"),
    "reached from the network": (("driver", "namespace:=beside", "port:=/dev/null"), True, "computers of the network"),
}
"""Arguments of another launch, whether the network reaches it, and why it is refused."""

injects("other driver", "by the same port", "by another name of the port", "by the device itself", *_LAUNCHES)(
    _other_driver
)


def _beyond_limits(stack: RigStack, variant: str) -> Outcome:
    """Configure a driver with a description beyond what may be: it must not even open the port."""
    robot, change = _BEYOND[variant]
    described = yaml.safe_load((config_dir() / "robots" / f"{robot}.yaml").read_text(encoding="utf-8"))
    change(described)
    file = stack.folder / "beyond.yaml"
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    began, (master, slave) = time.monotonic(), os.openpty()
    try:
        os.set_blocking(master, False)
        is_configured = _configured_beside(stack, str(file), Path(os.ttyname(slave)))
        try:
            sent = os.read(master, 1)
        except BlockingIOError:
            sent = b""
    finally:
        os.close(master)
        os.close(slave)
    reported = None if is_configured or sent else "it is rejected before the port is opened"
    return undisturbed(stack, began, reported)


_BEYOND: Mapping[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "680 kPa": ("membrane", lambda robot: robot["actuators"].update(maximum=680e3)),
    "tolerances of 1e9": ("membrane", lambda robot: robot.update(tolerances={"follow": 1e9, "beyond_range": 1e9})),
    "a range that is no number": ("membrane", lambda robot: robot["actuators"].update(maximum=float("nan"))),
    "3.2 A": ("tendon_rod", lambda robot: robot["devices"][0]["settings"].update(current_limit=3.2)),
}
injects("limits", *_BEYOND)(_beyond_limits)
