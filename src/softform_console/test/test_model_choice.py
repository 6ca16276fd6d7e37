"""Another model for all nodes, or for none: whoever refuses, is silent, or comes to it too late."""

from types import SimpleNamespace

import pytest

from softform_console import model_choice
from softform_console.model_choice import NODES, ModelChoice

FIRST, SECOND, THIRD = NODES


class Served:
    """A node's service `use_model`: answers at once, unless it is frozen; then the requests wait."""

    def __init__(self):
        self.model, self.refusal, self.is_frozen, self.waiting, self.heard = "learned", "", False, [], []

    def service_is_ready(self):
        return True

    def call_async(self, request):
        future = Future()
        self.waiting.append((request.model, future))
        if not self.is_frozen:
            self.serve()
        return future

    def serve(self):
        while self.waiting:
            model, future = self.waiting.pop(0)
            self.heard.append(model)
            refusal = self.refusal if model == "fem" else ""
            self.model = self.model if refusal or not model else model
            future.end(SimpleNamespace(success=not refusal, message=refusal, model=self.model, models=[]))


class Future:
    def __init__(self):
        self._answer, self._callbacks = None, []

    def add_done_callback(self, callback):
        self._callbacks.append(callback)
        if self._answer is not None:
            callback(self)

    def end(self, answer):
        self._answer = answer
        for callback in self._callbacks:
            callback(self)

    def cancelled(self):
        return False

    def exception(self):
        return None

    def result(self):
        return self._answer


class Stack:
    def __init__(self):
        self.nodes, self.notices = {name: Served() for name in NODES}, []
        node = SimpleNamespace(create_client=lambda kind, name: self.nodes[name.split("/")[0]])
        self.choice = ModelChoice(node, self.notices.append)

    def change(self):
        self.choice.choose("fem")
        self.choice._thread.join(10.0)
        return self.notices[-1]

    @property
    def models(self):
        return [node.model for node in self.nodes.values()]


@pytest.fixture
def stack(monkeypatch):
    monkeypatch.setattr(model_choice, "_ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(model_choice, "_ASK_SECONDS", 0.05)
    monkeypatch.setattr(model_choice, "_POLL_SECONDS", 0.02)
    return Stack()


def test_all_change(stack):
    assert stack.change().level == "info" and stack.models == ["fem"] * 3


def test_where_one_refuses_all_keep_theirs_though_none_had_said_which_before(stack):
    stack.nodes[THIRD].refusal = "It has no mesh."
    stack.nodes[SECOND].model = "other"
    notice = stack.change()
    assert notice.level == "error" and "none does: It has no mesh." in notice.text
    assert stack.models == ["learned", "other", "learned"] and stack.nodes[THIRD].heard == ["", "fem"]


def test_nothing_is_changed_while_one_does_not_say_what_it_uses(stack):
    stack.nodes[THIRD].is_frozen = True
    assert "does not say" in stack.change().text
    assert stack.models == ["learned"] * 3 and all("fem" not in node.heard for node in stack.nodes.values())


def test_a_node_that_comes_to_it_too_late_goes_back_too(stack):
    late = stack.nodes[SECOND]

    def serve():
        Served.serve(late)
        late.is_frozen = True  # after it has said what it uses

    late.serve = serve
    notice = stack.change()
    assert notice.level == "error" and f"{SECOND} may use it all the same" in notice.text
    assert stack.nodes[FIRST].model == stack.nodes[THIRD].model == "learned"
    Served.serve(late)
    assert "fem" in late.heard and late.model == "learned"
