"""Brings life-cycle nodes up in order and down in reverse."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from softform_bringup.remote_lifecycle import RemoteLifecycleNode, State, Step
from softform_core.errors import SoftformError

STEPS_UP = {State.UNCONFIGURED: Step.CONFIGURE, State.INACTIVE: Step.ACTIVATE}
STEPS_DOWN = {State.ACTIVE: Step.DEACTIVATE, State.INACTIVE: Step.CLEANUP, State.UNCONFIGURED: Step.SHUTDOWN}
SILENCE = 1.0  # s after which a node that is to go down counts as gone


class BringUpError(SoftformError):
    """A node did not come up."""


class Stopped(Exception):  # noqa: N818 (not an error: the user asked for it)
    """Bringing up was given up because a stop was asked for."""


class LifecycleManager:
    """Brings the given nodes up in order and down in reverse.

    The state of a node is read before every transition: an invalid one ends the node's process (rclpy 7.1.6). Nodes of
    another launch are left alone.

    Args:
        nodes: Nodes in order.
        log: Gets one line for each thing done.
        start_timeout: Time for a node's process to answer, s.
        transition_timeout: Time for one transition, s.
        should_stop: Whether bringing up is to be given up.
        configured_ahead: Nodes that need no other to be configured; they are while those before them come up.
        launch: Name of the launch that started this manager; empty if none that tells.
        elsewhere: Nodes that another launch starts; they are brought up all the same, and not shut down.
    """

    def __init__(
        self,
        nodes: Sequence[RemoteLifecycleNode],
        log: Callable[[str], None],
        start_timeout: float,
        transition_timeout: float,
        should_stop: Callable[[], bool],
        configured_ahead: Collection[str] = (),
        launch: str = "",
        elsewhere: Collection[str] = (),
    ) -> None:
        self._nodes = list(nodes)
        self._log = log
        self._start_timeout = start_timeout
        self._transition_timeout = transition_timeout
        self._should_stop = should_stop
        self._configured_ahead = configured_ahead
        self._launch = launch
        self._elsewhere = elsewhere
        self._launches: dict[str, str] = {}  # of each node that has told
        self._brought_up: set[str] = set()

    def bring_up(self) -> None:
        """Activate each node before the next one, and configure it before that.

        Raises:
            BringUpError: Naming the node, the step and the reason; earlier nodes are left as they are.
            Stopped: If `should_stop` became true.
        """
        ahead = {node.name: self._start_ahead(node) for node in self._nodes if node.name in self._configured_ahead}
        try:
            for node in self._nodes:
                if node.name in ahead:
                    its_turn, thread = ahead[node.name]
                    its_turn.set()
                    thread.join()  # never two transitions of one node at a time
                self._bring_up_one(node)
        finally:
            for its_turn, _ in ahead.values():
                its_turn.set()

    def _start_ahead(self, node: RemoteLifecycleNode) -> tuple[threading.Event, threading.Thread]:
        its_turn = threading.Event()
        thread = threading.Thread(target=self._configure_ahead, args=(node, its_turn), daemon=True)
        thread.start()
        return its_turn, thread

    def _configure_ahead(self, node: RemoteLifecycleNode, its_turn: threading.Event) -> None:
        """Configure a node before its turn; if that fails, its turn reports why."""
        while not node.is_there():
            if its_turn.wait(0.05):
                return
        with suppress(BringUpError, Stopped):
            if self._known_state(node) is State.UNCONFIGURED and not its_turn.is_set():
                self._change_up(node, Step.CONFIGURE)

    def _bring_up_one(self, node: RemoteLifecycleNode) -> None:
        self._wait_until_there(node)
        started = time.monotonic()
        state = self._known_state(node)
        while state is not State.ACTIVE:
            if state not in STEPS_UP:
                raise BringUpError(f"{node.name} is {state.name.lower()}.", "Restart its process.")
            step = STEPS_UP[state]
            succeeded = self._change_up(node, step)
            self._give_up_if_asked()
            if succeeded is None:
                raise BringUpError(
                    f"{node.name} did not answer within {self._transition_timeout:.0f} s when asked to "
                    f"{step.name.lower()}.",
                    "See its log.",
                )
            if not succeeded:
                reason = node.last_error() or "it gave no reason; see its log"
                raise BringUpError(f"{node.name} failed to {step.name.lower()}: {reason}")
            state = self._known_state(node)
        self._log(f"{node.name} is active after {time.monotonic() - started:.1f} s")

    def _change_up(self, node: RemoteLifecycleNode, step: Step) -> bool | None:
        """Take a step up with a node, unless it is another launch's."""
        if self._is_foreign(node, self._transition_timeout):
            raise BringUpError(
                f"{node.name} belongs to another launch.", "End that one, or use another namespace or ROS_DOMAIN_ID."
            )
        self._brought_up.add(node.name)
        return node.change(step, self._transition_timeout)

    def _is_foreign(self, node: RemoteLifecycleNode, timeout: float) -> bool:
        """Return whether a node is of another launch than this manager, or does not tell in time."""
        deadline = time.monotonic() + timeout
        while self._launch and node.name not in {*self._elsewhere, *self._launches}:
            told = node.launch(min(SILENCE, deadline - time.monotonic()))
            self._give_up_if_asked()
            if told is not None:
                self._launches[node.name] = told
            elif time.monotonic() > deadline:
                return True
        return self._launches.get(node.name, "") not in ("", self._launch)

    def bring_down(self, patience: float, safe_first: Collection[str] = ()) -> None:
        """Deactivate, clean up and shut down what was brought up here and still answers, the last one first.

        Args:
            patience: Time for all of it, s; nodes that do not answer are skipped.
            safe_first: Nodes that are deactivated before any other: with the driver the robot is made safe at once, not
                after the nodes that stand behind it.
        """
        deadline = time.monotonic() + patience
        ours = [node for node in self._nodes if node.name in self._brought_up]
        for node in ours:
            if node.name in safe_first:
                self._take_down(node, deadline, lambda state: state is not State.ACTIVE)
        for node in reversed(ours):
            last = {State.FINALIZED, State.UNCONFIGURED if node.name in self._elsewhere else State.FINALIZED}
            if self._take_down(node, deadline, last.__contains__):
                self._log(f"{node.name} is down")

    def _take_down(self, node: RemoteLifecycleNode, deadline: float, is_enough: Callable[[State], bool]) -> bool:
        """Take one step down after the other until it is enough; return whether it came so far."""
        silent_after = time.monotonic() + SILENCE
        while node.is_there():
            state = node.state(min(SILENCE, deadline - time.monotonic()))
            if state is None and time.monotonic() < min(silent_after, deadline):
                time.sleep(0.05)
                continue
            if state is None:
                self._log(f"{node.name} does not answer; it is left to its own end")
                return False
            if is_enough(state):
                return True
            succeeded = node.change(STEPS_DOWN[state], deadline - time.monotonic())
            if not succeeded:
                reason = "it ended by itself or is busy" if succeeded is None else node.last_error()
                self._log(f"{node.name} did not {STEPS_DOWN[state].name.lower()}: {reason}")
                return False
            silent_after = time.monotonic() + SILENCE
        return False

    def missing(self, timeout: float) -> dict[str, str]:
        """Return what is wrong with each node that should be active and does not answer so within `timeout` s."""
        wrong = {}
        for node in self._nodes:
            state = node.state(timeout) if node.is_there() else None
            if state is None:
                wrong[node.name] = "does not answer"
            elif state is not State.ACTIVE:
                wrong[node.name] = f"is {state.name.lower()}"
        return wrong

    def _give_up_if_asked(self) -> None:
        if self._should_stop():
            raise Stopped

    def _wait_until_there(self, node: RemoteLifecycleNode) -> None:
        deadline = time.monotonic() + self._start_timeout
        while not node.is_there():
            self._give_up_if_asked()
            if time.monotonic() > deadline:
                raise BringUpError(
                    f"{node.name} did not appear within {self._start_timeout:.0f} s.",
                    "See whether its process runs, and whether name and namespace are right.",
                )
            time.sleep(0.05)

    def _known_state(self, node: RemoteLifecycleNode) -> State:
        """Return the node's primary state, waiting while it changes."""
        deadline = time.monotonic() + self._transition_timeout
        while time.monotonic() < deadline:
            state = node.state(2.0)
            self._give_up_if_asked()
            if state is not None:
                return state
            time.sleep(0.05)
        raise BringUpError(f"{node.name} does not tell its state.", "See its log.")
