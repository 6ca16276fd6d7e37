"""What a description may not raise: the ceiling of its port, and the range that was driven there before."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from softform_actuation import ceilings, state_files
from softform_actuation.assembly import make_devices, served_by_devices
from softform_actuation.ceilings import check_ceiling, check_range
from softform_actuation.device import ServedActuators
from softform_core.errors import SoftformError
from softform_core.paths import places
from softform_core.robots import Robot, load_robot

ADAPTER = "USB adapter 1a86:7523 77"
NAMES = ["device 188:0", "/dev/ttyUSB0", ADAPTER]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state of its own, and no ceilings of the machine that the test runs on."""
    monkeypatch.setenv(state_files.OVERRIDE, str(tmp_path / "state"))
    monkeypatch.setenv(ceilings.OVERRIDE, str(tmp_path / "ceilings.yaml"))
    return tmp_path / "state"


def write(folder: Path, content: object) -> None:
    (folder / "ceilings.yaml").write_text(yaml.safe_dump(content))


def ranged(robot_with: Callable[..., Robot], low: float | list[float], high: float | list[float]) -> ServedActuators:
    drive = {"minimum": low, "maximum": high, "slew_rate": 4000.0}
    return served_by_devices(robot_with(actuators=drive, tolerances={}))[0]


@pytest.mark.parametrize("path", [p for place in places() for p in sorted((place / "config/robots").glob("*.yaml"))])
def test_each_robot_that_ships_is_below_the_usual_ceiling(path: Path) -> None:
    for served in served_by_devices(load_robot(path)):
        check_ceiling(served, NAMES)


@pytest.mark.parametrize(
    ("low", "high", "which"), [(0.0, 680e3, "0 to 680000 Pa"), (-101e3, 5e3, "-101000 to 5000 Pa")]
)
def test_a_description_beyond_the_usual_ceiling_is_rejected(
    robot_with: Callable[..., Robot], low: float, high: float, which: str, tmp_path: Path
) -> None:
    with pytest.raises(
        SoftformError,
        match=f"c1 .* goes from {which}; the ceiling of a port .*ceilings.yaml does not name is -100000 to 200000",
    ):
        check_ceiling(ranged(robot_with, low, high), NAMES)
    write(tmp_path, {ADAPTER: {"minimum": -101e3, "maximum": 680e3, "unit": "Pa"}})
    check_ceiling(ranged(robot_with, low, high), NAMES)
    with pytest.raises(SoftformError, match="a port that"):
        check_ceiling(ranged(robot_with, low, high), ["/dev/ttyUSB1"])


@pytest.mark.parametrize("name", NAMES)
def test_a_port_has_the_ceiling_that_the_machine_gives_it(
    robot_with: Callable[..., Robot], name: str, tmp_path: Path
) -> None:
    write(tmp_path, {name: {"minimum": 0.0, "maximum": 6000.0, "unit": "Pa"}})
    check_ceiling(ranged(robot_with, 0.0, 6000.0), NAMES)
    with pytest.raises(SoftformError) as error:
        check_ceiling(ranged(robot_with, 0.0, [6000.0] * 8 + [6001.0]), NAMES)
    told = error.value.message
    assert told.startswith("c9 ") and "6001 Pa" in told and f"the ceiling of {name} is 0 to 6000 Pa" in told
    assert str(tmp_path / "ceilings.yaml") in error.value.next_step
    with pytest.raises(SoftformError, match="from -1 to 6000 Pa"):
        check_ceiling(ranged(robot_with, -1.0, 6000.0), NAMES)


def test_of_two_ceilings_the_lower_one_holds(robot_with: Callable[..., Robot], tmp_path: Path) -> None:
    bound = {"minimum": 0.0, "unit": "Pa"}
    write(tmp_path, {NAMES[0]: bound | {"maximum": 9000.0}, ADAPTER: bound | {"maximum": 6000.0}})
    with pytest.raises(SoftformError, match="77 is 0 to 6000 Pa"):
        check_ceiling(ranged(robot_with, 0.0, 8000.0), NAMES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({ADAPTER: {"minimum": 0.0, "maximum": 0.1, "unit": "m"}}, "5000 Pa; the ceiling of .* is 0 to 0.1 m"),
        ({ADAPTER: {"maximum": 6000.0, "unit": "Pa"}}, "cannot be read"),
        ({ADAPTER: {"minimum": 0.0, "maximum": float("nan"), "unit": "Pa"}}, "cannot be read"),
        ({ADAPTER: {"minimum": 0.0, "maximum": 6e3, "unit": "Pa", "maximun": 5e3}}, "cannot be read"),
        ([1, 2], "cannot be read"),
    ],
)
def test_ceilings_that_are_not_understood_let_nothing_through(
    robot_with: Callable[..., Robot], content: object, message: str, tmp_path: Path
) -> None:
    write(tmp_path, content)
    with pytest.raises(SoftformError, match=message):
        check_ceiling(ranged(robot_with, 0.0, 5000.0), NAMES)
    (tmp_path / "ceilings.yaml").write_bytes(b"{\xff")
    with pytest.raises(SoftformError, match="cannot be read"):
        check_ceiling(ranged(robot_with, 0.0, 5000.0), NAMES)


def test_what_was_driven_is_kept_and_more_is_confirmed_once(robot_with: Callable[..., Robot], state: Path) -> None:
    check_range(ranged(robot_with, 0.0, 5000.0), NAMES)
    check_range(ranged(robot_with, 0.0, 5000.0), NAMES)
    with pytest.raises(SoftformError, match="c1 .* from 0 to 60000 Pa; the range that USB .* 77 was .* is 0 to 5000"):
        check_range(ranged(robot_with, 0.0, 60e3), NAMES)
    with pytest.raises(SoftformError, match="c9 .* 5001 Pa") as error:
        check_range(ranged(robot_with, 0.0, [5000.0] * 8 + [5001.0]), NAMES)
    with pytest.raises(SoftformError, match="from -1 to 5000"):
        check_range(ranged(robot_with, -1.0, 5000.0), NAMES)
    check_range(ranged(robot_with, 0.0, 60e3), ["/dev/zero"])  # another port
    (file,) = state.glob("USB*.range.json")
    assert error.value.next_step.endswith(f"rm {file}")
    file.unlink()
    for _ in range(2):
        check_range(ranged(robot_with, 0.0, 60e3), NAMES)


def test_a_smaller_range_is_taken_and_the_larger_one_asked_about_again(robot_with: Callable[..., Robot]) -> None:
    for highest in (60e3, 5e3):
        check_range(ranged(robot_with, 0.0, highest), NAMES)
    with pytest.raises(SoftformError, match="was driven in before is 0 to 5000 Pa"):
        check_range(ranged(robot_with, 0.0, 60e3), NAMES)


def test_a_tendon_is_no_smaller_than_a_chamber(robot_with: Callable[..., Robot]) -> None:
    check_range(ranged(robot_with, 0.0, 5000.0), NAMES)
    with pytest.raises(SoftformError, match="0.014 m; the range .* 5000 Pa"):
        check_range(served_by_devices(load_robot("tendon_rod"))[0], NAMES)


@pytest.mark.parametrize("content", [b"", b"{", b'{"unit": "Pa", "minimum": 0.0}'])
def test_a_damaged_record_is_confirmed_too(robot_with: Callable[..., Robot], state: Path, content: bytes) -> None:
    check_range(ranged(robot_with, 0.0, 5000.0), NAMES)
    (file,) = state.iterdir()
    file.write_bytes(content)
    with pytest.raises(SoftformError, match="range before of USB .* cannot be read"):
        check_range(ranged(robot_with, 0.0, 5000.0), NAMES)


def test_a_range_that_cannot_be_kept_does_not_keep_the_driver_from_making_safe(
    robot_with: Callable[..., Robot], state: Path
) -> None:
    state.write_bytes(b"")
    state.unlink()
    state.symlink_to(state.parent / "not mounted" / "state")
    check_range(ranged(robot_with, 0.0, 5000.0), NAMES)


def test_terminals_and_ports_that_are_not_there_have_no_range(
    robot_with: Callable[..., Robot], state: Path, terminal: tuple[str, int]
) -> None:
    for names in ([terminal[0]], ["/dev/ttyUSB77"]):
        check_range(ranged(robot_with, 0.0, 60e3), names)
    assert not state.exists()


def test_a_device_without_actuators_needs_neither(robot_with: Callable[..., Robot], state: Path) -> None:
    served = ranged(robot_with, 0.0, 680e3)
    nothing = np.zeros(0)
    served = ServedActuators("membrane", "relay", [], [], [], nothing, nothing, nothing, nothing, served.tolerances)
    check_ceiling(served, NAMES)
    check_range(served, NAMES)
    assert not state.exists()


def test_no_device_is_made_beyond_ceiling_or_range(
    robot_with: Callable[..., Robot], plugged: Callable[..., None], tmp_path: Path
) -> None:
    plugged(("/dev/null", "77", "1-1"))
    values = {"port": "/dev/null", "board": "openpneu_a", "plant": "none", "chamber_volumes": [1.0]}
    values |= {"offset_limit": 500.0, "response_timeout": 1.5}
    usual = load_robot("membrane")
    make_devices(values, usual)
    drive = {"minimum": 0.0, "maximum": 6000.0, "slew_rate": 4000.0}
    with pytest.raises(SoftformError, match="was driven in before is 0 to 5000 Pa"):
        make_devices(values, robot_with(actuators=drive))
    write(tmp_path, {ADAPTER: {"minimum": 0.0, "maximum": 4000.0, "unit": "Pa"}})
    with pytest.raises(SoftformError, match="the ceiling of USB adapter 1a86:7523 77 is 0 to 4000 Pa"):
        make_devices(values, usual)
