"""Listens to a running stack: its nodes' states, their diagnostics, and all topics."""

import importlib
import os
import shutil
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState
from rclpy.client import Client
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future

from softform_core.paths import data_dir, runs_dir
from softform_interfaces.msg import ActuationHistory, BringupState, DriverState
from softform_recording.qos_profiles import reader_of
from softform_ros.driver_words import state_word
from softform_ros.stack_state import state_in_words
from softform_ros.timers import create_steady_timer
from softform_tools.status.stack_status import (
    DRIVER,
    GONE,
    LEVELS,
    NO_ANSWER,
    SILENT_AFTER,
    UNMANAGED,
    DiskStatus,
    DriverStatus,
    NodeStatus,
    RecorderStatus,
    StackStatus,
    TopicStatus,
    held_shape,
    made_printable,
    motors_of,
    rest_of_actuators,
)

WINDOW = 5.0
"""Time over which a rate is taken, s."""


class TopicWatch:
    """Arrivals of one topic; written by the executor's thread, read by another."""

    def __init__(self) -> None:
        self._arrivals: deque[float] = deque()
        self._sent_at: float | None = None

    def note(self, sent_at: float) -> None:
        """Take a message that was sent at `sent_at`, s since the epoch."""
        now = time.monotonic()
        self._arrivals.append(now)
        while self._arrivals[0] < now - WINDOW:
            self._arrivals.popleft()
        self._sent_at = sent_at

    def rate(self) -> float:
        """Return messages a second over the last `WINDOW` seconds; 0 if fewer than two came."""
        recent = [moment for moment in tuple(self._arrivals) if moment >= time.monotonic() - WINDOW]
        if len(recent) < 2 or recent[-1] <= recent[0]:
            return 0.0
        return (len(recent) - 1) / (recent[-1] - recent[0])

    def age(self) -> float | None:
        """Return seconds since the last message was sent; None if none came."""
        return None if self._sent_at is None else max(0.0, time.time() - self._sent_at)


_ROBOT_NODES = ("shape_predictor", "inverse_kinematics", "motion_planner", "collector")
"""Nodes whose `hardware_id` is the robot."""

_MOST = 500
"""Most nodes, and topics, that are kept: anybody may announce more."""

_LOOK_PERIOD = 0.5
_ANSWER_SECONDS = 2.0
_UNINTERESTING = ("/_action/", "/transition_event", "/parameter_events", "/rosout")


@dataclass
class _Report:
    """Last diagnostics of a node."""

    level: str
    message: str
    hardware_id: str
    values: dict[str, str]
    received: float


@dataclass
class _Asked:
    """The life cycle of one node: the last answer, and the question that is open."""

    client: Client
    state: str = ""
    open_since: float = field(default_factory=time.monotonic)
    question: Future | None = None


class StackObserver:
    """Observes one namespace, such as `/softform`, until its node ends; something else spins the node."""

    def __init__(self, node: Node, namespace: str) -> None:
        self._node, self._namespace = node, namespace
        self._topics: dict[str, TopicWatch] = {}
        self._life_cycles: dict[str, _Asked] = {}
        self._reports: dict[str, _Report] = {}
        self._driver: DriverStatus | None = None
        self._driver_heard = 0.0
        self._past_known: bool | None = None
        self._bringup = ""
        self._unheard: set[str] = set()
        self._began = time.monotonic()
        self._timer = create_steady_timer(node, _LOOK_PERIOD, self._look)

    def namespaces(self) -> list[str]:
        """Return namespaces in which other nodes run; the root, where programs like this one are, is the last one."""
        return sorted({namespace for _, namespace in self._others()}, key=lambda one: (one == "/", one))

    def status(self) -> StackStatus:
        """Return what is known now, fit for a terminal."""
        driver = self._driver
        if driver is not None:
            silent_for = time.monotonic() - self._driver_heard
            driver = replace(driver, silent_for=silent_for, past_known=self._past_known)
        present = {name for name, namespace in self._others() if namespace == self._namespace}
        manager = self._reports.get(self._full("bringup_manager"))
        managed = [] if manager is None else [one for one in manager.values.get("nodes", "").split(", ") if one]
        names = [*managed, *sorted(present - set(managed))]
        seen = StackStatus(
            namespace=self._namespace,
            domain=int(os.environ.get("ROS_DOMAIN_ID") or 0),
            bringup=self._bringup,
            driver=driver,
            motors={
                name: state
                for node, one in self._own_reports()
                if node == DRIVER
                for name, state in motors_of(one.values).items()
            },
            held={node: held for node, one in self._own_reports() if (held := held_shape(one.values))},
            robots=tuple(sorted({one.hardware_id for name, one in self._own_reports() if name in _ROBOT_NODES})),
            models={
                name: one.values["sim-to-real"] for name, one in self._own_reports() if "sim-to-real" in one.values
            },
            nodes=tuple(self._node_status(name, name in present) for name in names),
            topics=tuple(self._topic_status(name) for name in sorted(self._topics)),
            recorders=tuple(
                recorder
                for name, one in self._own_reports()
                if name in present and (recorder := _recorder_status(name, one.values)) is not None
            ),
            disks=_disks((runs_dir(), data_dir())),
        )
        return cast(StackStatus, made_printable(seen))

    def _others(self) -> list[tuple[str, str]]:
        own = self._node.get_name()
        return [(name, space) for name, space in self._node.get_node_names_and_namespaces() if name != own]

    def _full(self, name: str) -> str:
        return f"{self._namespace.rstrip('/')}/{name}"

    def _own_reports(self) -> list[tuple[str, _Report]]:
        prefix = self._full("")
        return [
            (name.removeprefix(prefix), one) for name, one in sorted(self._reports.items()) if name.startswith(prefix)
        ]

    def _node_status(self, name: str, is_present: bool) -> NodeStatus:
        report = self._reports.get(self._full(name))
        level, message = ("", "") if report is None else (report.level, report.message)
        if report is None and time.monotonic() - self._began > SILENT_AFTER and self._publishes_diagnostics(name):
            level, message = "STALE", f"has reported nothing for {time.monotonic() - self._began:.0f} s: does it hang?"
        if report is not None and time.monotonic() - report.received > SILENT_AFTER:
            level, message = "STALE", f"silent for {time.monotonic() - report.received:.0f} s; before: {message}"
        return NodeStatus(name, self._state(name) if is_present else GONE, level, message)

    def _publishes_diagnostics(self, name: str) -> bool:
        return any(
            publisher.node_name == name and publisher.node_namespace == self._namespace
            for publisher in self._node.get_publishers_info_by_topic("/diagnostics")
        )

    def _state(self, name: str) -> str:
        asked = self._life_cycles.get(name)
        if asked is None:
            return UNMANAGED
        if asked.question is not None and time.monotonic() - asked.open_since > _ANSWER_SECONDS:
            return NO_ANSWER
        return asked.state or NO_ANSWER

    def _topic_status(self, topic: str) -> TopicStatus:
        watch = self._topics[topic]
        name = topic.removeprefix(self._full(""))
        return TopicStatus(name, self._node.count_publishers(topic), round(watch.rate(), 2), watch.age())

    def _look(self) -> None:
        for topic, types in self._node.get_topic_names_and_types():
            is_ours = topic.startswith(self._full("")) or topic == "/diagnostics"
            if not is_ours or topic in self._unheard or any(part in topic for part in _UNINTERESTING):
                continue
            if topic not in self._topics and len(self._topics) < _MOST:
                self._listen(topic, types[0])
        for name, namespace in self._others():
            if namespace == self._namespace:
                self._ask(name)

    def _listen(self, topic: str, message_type: str) -> None:
        publishers = self._node.get_publishers_info_by_topic(topic)
        if not publishers:
            return
        package, _, name = message_type.split("/")
        try:
            message_class = getattr(importlib.import_module(f"{package}.msg"), name)
        except (ImportError, AttributeError):  # of somebody else's package
            if len(self._unheard) < _MOST:
                self._unheard.add(topic)
            return
        self._topics[topic] = TopicWatch()
        profile = reader_of([publisher.qos_profile for publisher in publishers])
        self._node.create_subscription(message_class, topic, partial(self._on_message, topic), profile, raw=True)

    def _on_message(self, topic: str, message: bytes, information: dict[str, int | None]) -> None:
        self._topics[topic].note((information["source_timestamp"] or time.time_ns()) * 1e-9)
        if topic == "/diagnostics":
            self._note_diagnostics(deserialize_message(message, DiagnosticArray))
        elif topic == self._full("driver_state"):
            self._driver = driver_status(deserialize_message(message, DriverState))
            self._driver_heard = time.monotonic()
        elif topic == self._full("actuation_history"):
            self._past_known = deserialize_message(message, ActuationHistory).known
        elif topic == self._full("bringup_state"):
            self._bringup = state_in_words(deserialize_message(message, BringupState))

    def _note_diagnostics(self, array: DiagnosticArray) -> None:
        for status in array.status:
            is_known = status.name in self._reports or len(self._reports) < _MOST
            if not is_known or not status.name.startswith(self._full("")):
                continue
            level = LEVELS[min(int.from_bytes(status.level, "little"), len(LEVELS) - 1)]
            values = {pair.key: pair.value for pair in status.values}
            self._reports[status.name] = _Report(level, status.message, status.hardware_id, values, time.monotonic())

    def _ask(self, name: str) -> None:
        if name not in self._life_cycles:
            if len(self._life_cycles) >= _MOST:
                return
            services = dict(self._node.get_service_names_and_types_by_node(name, self._namespace))
            if "lifecycle_msgs/srv/GetState" not in services.get(self._full(f"{name}/get_state"), []):
                return
            client = self._node.create_client(GetState, self._full(f"{name}/get_state"))
            self._life_cycles[name] = _Asked(client)
        asked = self._life_cycles[name]
        if asked.question is not None and time.monotonic() - asked.open_since > 2.0 * _ANSWER_SECONDS:
            asked.client.remove_pending_request(asked.question)  # the answer is lost, or the node hangs: ask again
            asked.question = None
            asked.state = NO_ANSWER
        if asked.question is None and asked.client.service_is_ready():
            asked.open_since = time.monotonic()
            asked.question = asked.client.call_async(GetState.Request())
            asked.question.add_done_callback(partial(self._on_answer, asked))

    def _on_answer(self, asked: _Asked, question: Future) -> None:
        if question is asked.question and not question.cancelled():
            asked.state, asked.question = question.result().current_state.label, None


def driver_status(message: DriverState) -> DriverStatus:
    """Return the status of a driver from what it says of itself."""
    return DriverStatus(
        state=state_word(message.state),
        reason=message.reason,
        holder=message.holder,
        held_for=message.held_for,
        fingerprint=message.fingerprint,
        faults=tuple(message.faults),
        warnings=tuple(message.warnings),
        actuators=rest_of_actuators(
            message.actuator, message.asked, message.acknowledged, message.at_rest, message.rest_value
        ),
    )


def _recorder_status(name: str, values: Mapping[str, str]) -> RecorderStatus | None:
    """Return the status of a recorder from its diagnostics; None if the node is none."""
    with suppress(KeyError, ValueError):
        missing = int(values["dropped"]) + int(values["lost before arrival"])
        return RecorderStatus(name, values["bag"], int(values["messages"]), missing)
    return None


def _disks(folders: Iterable[Path]) -> tuple[DiskStatus, ...]:
    """Return the room for some folders, which need not exist yet; folders of one disk are reported together."""
    by_device: dict[int, tuple[Path, list[str]]] = {}
    for folder in folders:
        place = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
        by_device.setdefault(place.stat().st_dev, (place, []))[1].append(str(folder))
    usages = [(shutil.disk_usage(place), names) for place, names in by_device.values()]
    return tuple(DiskStatus(" and ".join(names), usage.free, usage.total) for usage, names in usages)
