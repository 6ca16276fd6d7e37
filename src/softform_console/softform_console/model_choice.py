"""Which kind of model the nodes of the stack predict and solve with, and another one for all of them."""

import threading
import time
from collections.abc import Callable
from typing import Any

from softform_console.protocol import FromServer, Notice
from softform_core.errors import SoftformError
from softform_interfaces.srv import UseModel
from softform_ros.guarded_node import GuardedNode

NODES = ("shape_predictor", "inverse_kinematics", "motion_planner")
"""Those that have models, in the order in which they are asked to change: first the one that moves nothing."""

_ANSWER_SECONDS = 90.0
"""Time within which a node has opened another model, s: a simulator is compiled and solved with once."""

_ASK_SECONDS, _POLL_SECONDS = 2.0, 0.1

_SILENCE = f"It did not answer, or was not ready, within {_ANSWER_SECONDS:g} s."


class ModelChoice:
    """Asks the nodes, and has them change together: where one cannot, the others go back to what they had.

    Args:
        node: Node of the console; another thread spins it.
        tell: Takes what pages should be told.
    """

    def __init__(self, node: GuardedNode, tell: Callable[[FromServer], None]) -> None:
        self._node, self._tell = node, tell
        self._clients = {name: node.create_client(UseModel, f"{name}/use_model") for name in NODES}
        self._kinds: dict[str, str] = {}
        self._asked_at = -float("inf")
        self._thread: threading.Thread | None = None
        self.kinds: list[str] = []

    @property
    def kind(self) -> str:
        """The kind that all nodes use; empty where they differ, or none has said."""
        kinds = set(self._kinds.values())
        return kinds.pop() if len(kinds) == 1 else ""

    def close(self) -> None:
        """Close the services."""
        for client in self._clients.values():
            self._node.destroy_client(client)

    def look(self) -> None:
        """Ask what is in use, if that was not just now; returns at once."""
        now = time.monotonic()
        if now - self._asked_at < _ASK_SECONDS:
            return
        self._asked_at = now
        for name, client in self._clients.items():
            if client.service_is_ready():
                client.call_async(UseModel.Request()).add_done_callback(lambda done, name=name: self._note(name, done))
            else:
                self._kinds.pop(name, None)

    def choose(self, kind: str) -> None:
        """Have all nodes use a kind; returns at once, and tells how that ended.

        Raises:
            SoftformError: If a change is under way, or no node offers it.
        """
        if self._thread is not None and self._thread.is_alive():
            raise SoftformError("Another model is being opened.", "Wait until that has ended.")
        if not self._ready():
            raise SoftformError("No node offers another model.", "Robots with a surface have a choice of models.")
        self._thread = threading.Thread(target=self._change, args=(kind,), name="model", daemon=True)
        self._thread.start()

    def _ready(self) -> list[str]:
        return [name for name, client in self._clients.items() if client.service_is_ready()]

    def _change(self, kind: str) -> None:
        begun, before, changed = time.monotonic(), dict[str, str](), list[str]()
        for name in self._ready():
            if (answer := self._asked(name, "")) is None:
                self._tell_failure(f"{name} does not say which model it uses, so all keep theirs.")
                return
            before[name] = answer.model
        for name in before:
            refusal = self._use(name, kind)
            if not refusal:
                changed.append(name)
                continue
            if refusal == _SILENCE:
                changed.append(name)  # it may come to it later
            kept = [other for other in changed if self._use(other, before[other])]
            outcome = f"{' and '.join(kept)} may use it all the same" if kept else "none does"
            self._tell_failure(f"{name} cannot use the model '{kind}', and {outcome}: {refusal}")
            return
        text = f"The model '{kind}' is in use, after {time.monotonic() - begun:.1f} s."
        self._tell(Notice(level="info", about="use_model", text=text))

    def _tell_failure(self, text: str) -> None:
        self._tell(Notice(level="error", about="use_model", text=text))

    def _use(self, name: str, kind: str) -> str:
        """Have a node use a kind; returns why it does not, if so."""
        deadline, wanted = time.monotonic() + _ANSWER_SECONDS, kind
        while time.monotonic() < deadline:
            answer, wanted = self._asked(name, wanted), ""
            if answer is not None and not answer.success:
                return str(answer.message)
            if answer is not None and answer.model == kind:
                return ""
            time.sleep(_POLL_SECONDS)
        return _SILENCE

    def _asked(self, name: str, kind: str) -> UseModel.Response | None:
        ended = threading.Event()
        future = self._clients[name].call_async(UseModel.Request(model=kind))
        future.add_done_callback(lambda _: ended.set())
        if not ended.wait(_ASK_SECONDS):
            return None
        self._note(name, future)
        return None if future.exception() is not None else future.result()

    def _note(self, name: str, done: Any) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        answer = done.result()
        self._kinds[name], self.kinds = answer.model, list(answer.models)
