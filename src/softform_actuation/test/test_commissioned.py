"""What was commissioned is found again at each start, for that description alone, and only if nothing was wrong."""

import pytest

from softform_actuation.commissioned import Commissioned, doubt_about, keep
from softform_core.errors import SoftformError
from softform_core.robots import load_robot

ROBOT = load_robot("membrane")
RIGHT = Commissioned(
    date="2026-01-02T03:04:05+00:00",
    robot="membrane",
    command_fingerprint=ROBOT.command_fingerprint(),
    by="person",
    share=0.2,
    confirmed=True,
    seen={name: [name] for name in ROBOT.actuators},
)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTFORM_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_robot_that_was_confirmed_is_in_no_doubt_on_the_adapter_that_it_was_on(state):
    assert "nobody has confirmed" in doubt_about(ROBOT, ["/run/board"])
    assert keep(RIGHT, ["/run/board"]) == [str(state / "run_board.commissioned.json")]
    assert doubt_about(ROBOT, ["/run/board"]) == ""
    assert "nobody has confirmed" in doubt_about(ROBOT, ["/run/board", "/run/other"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"command_fingerprint": "0123"}, "on 2026-01-02 is of another description"),
        ({"confirmed": False, "wrong": ["c4 moved when c3 was asked."]}, "on 2026-01-02 c4 moved when c3 was asked."),
        ({"confirmed": False}, "not every actuator was asked"),
    ],
)
def test_what_is_of_another_robot_or_was_wrong_is_a_doubt(changed, said):
    keep(RIGHT.model_copy(update=changed), ["/run/board"])
    assert said in doubt_about(ROBOT, ["/run/board"]) and "./softform commission" in doubt_about(ROBOT, ["/run/board"])


@pytest.mark.parametrize("content", [b"", b"{}", b"{", b"\xff", b'{"confirmed": true}'])
def test_what_cannot_be_read_confirms_nothing(state, content):
    (path,) = keep(RIGHT, ["/run/board"])
    (state / "run_board.commissioned.json").write_bytes(content)
    assert path in doubt_about(ROBOT, ["/run/board"])


def test_a_place_that_cannot_be_written_is_told(state):
    state.write_text("a file")
    with pytest.raises(SoftformError, match="cannot be made"):
        keep(RIGHT, ["/run/board"])
