"""The service `use_model`: what is being opened can be given up."""

import threading
from types import SimpleNamespace

import pytest

from softform_interfaces.srv import UseModel
from softform_ros import node_models
from softform_ros.node_models import _ModelService


class Models:
    """Opens a kind when it is let."""

    def __init__(self) -> None:
        self.kind, self.begun, self.goes_on = "learned", threading.Event(), threading.Event()

    def of(self, kind: str) -> None:
        self.begun.set()
        assert self.goes_on.wait(10.0)

    def choose(self, kind: str) -> None:
        self.kind = kind


class Service:
    def __init__(self) -> None:
        self.models, self.tasks, self.is_told = Models(), [], threading.Event()
        node = SimpleNamespace(
            get_name=lambda: "solver",
            create_service=lambda *_: None,
            destroy_service=lambda service: None,
            opened=SimpleNamespace(callback=lambda *_: None),
            executor=SimpleNamespace(create_task=self.create_task),
            get_logger=lambda: SimpleNamespace(info=print, warning=print),
            diagnostics=SimpleNamespace(publish=lambda: None),
        )
        self.service = _ModelService(node, self.models)  # type: ignore[arg-type]

    def create_task(self, work, *arguments) -> None:
        self.tasks.append((work, arguments))
        self.is_told.set()

    def ask(self, model: str) -> UseModel.Response:
        return self.service._on_request(UseModel.Request(model=model), UseModel.Response())

    def end_opening(self) -> None:
        self.models.goes_on.set()
        assert self.is_told.wait(10.0)
        work, arguments = self.tasks.pop()
        work(*arguments)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(node_models, "plugin_kinds", lambda group: ["fem", "learned"])
    return Service()


def test_a_kind_is_in_use_once_it_is_opened(service: Service) -> None:
    answer = service.ask("fem")
    assert answer.success and answer.model == "learned" and "being opened" in answer.message
    assert not service.ask("other").success
    service.end_opening()
    assert service.ask("").model == "fem"


def test_who_asks_for_what_is_in_use_gives_up_what_is_being_opened(service: Service) -> None:
    service.ask("fem")
    answer = service.ask("learned")
    assert answer.success and not answer.message and answer.model == "learned"
    service.end_opening()
    assert service.ask("").model == "learned", "it must not come into use later"
