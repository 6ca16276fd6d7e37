"""What each fault does to board, line, air, motion capture and scanner: seen from outside, as a driver would see it."""

import time

import numpy as np
import pytest
import serial

from softform_core.errors import SoftformError
from softform_core.plant import load_plant
from softform_core.shapes.read import read_shape
from softform_rig.emulated_board import BOOT_SECONDS
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.faulty_board import FaultyBoard, FaultyLine
from softform_rig.line_board import Firmware
from softform_rig.motion_capture import check_marker_names, faulty_markers
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_rig.scanner import Scan
from softform_rig.surface_scans import export_faulty_scan

PLANT = load_plant()
STREAM = b"T" + b",".join([b"0.00"] * 10) + b";\r\n"


class Bench:
    """A board that runs with targets, on a clock of the test's own."""

    def __init__(self, target: float = 4.0) -> None:
        self.now = 0.0
        self.schedule = FaultSchedule(clock=lambda: self.now)
        self.board = FaultyBoard(Firmware(PLANT), self.schedule)
        for channel in range(10):
            self.say(b"SC=%d\r\nT=%.2f\r\n" % (channel, target))
        self.say(b"C\r\n")
        self.wait(2.0)

    def inject(self, text: str) -> None:
        self.schedule.inject(parse_fault(text))

    def say(self, request: bytes) -> None:
        self.board.receive(request, self.now)

    def wait(self, seconds: float) -> bytes:
        heard = b""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.01
            self.board.advance(self.now)
            heard += self.board.take_output()
        return heard

    @property
    def pressures(self) -> np.ndarray:
        return self.board.board.pressures()

    @property
    def shown(self) -> list[str]:
        return [event.fault.kind.name for event in self.schedule.events() if event.event == "shows"]


def test_a_stalled_board_is_silent_deaf_and_leaves_pumps_and_valves_as_they_are() -> None:
    bench = Bench()
    bench.say(b"SC=2\r\nT=60.00\r\n")
    bench.wait(0.1)
    bench.inject("stall+2")
    before = bench.pressures
    bench.say(b"V\r\n")
    assert bench.wait(1.5) == b""
    assert bench.pressures[2] > before[2] + 20.0, "the pump that was on stays on: that is the danger of a stall"
    assert bench.board.vent_times, "the request was on the wire all the same"
    assert bench.wait(1.0).count(b";\r\n") > 10, "it goes on where it stood"
    assert bench.shown == ["stall"]


def test_a_reboot_is_silent_for_a_while_and_vents() -> None:
    bench = Bench()
    bench.inject("reboot@0.5")
    assert bench.wait(0.45).endswith(b";\r\n")
    assert bench.wait(0.1)[-3:] in (b"", b";\r\n")
    assert bench.wait(BOOT_SECONDS) == b""
    assert np.abs(bench.pressures).max() < 0.1
    assert bench.wait(1.0) == b"", "nobody has started it again"
    bench.say(b"AT\r\n")
    assert bench.wait(0.05) == b"OK;Successful\r\n"


def test_a_slow_boot_takes_its_time() -> None:
    bench = Bench()
    bench.inject("slow_boot=4")
    bench.inject("reboot")
    bench.wait(3.9)
    bench.say(b"AT\r\n")
    assert bench.wait(0.05) == b""
    bench.wait(0.2)
    bench.say(b"AT\r\n")
    assert bench.wait(0.05) == b"OK;Successful\r\n"


def test_a_mute_line_hides_a_board_that_hears() -> None:
    bench = Bench()
    bench.inject("mute")
    bench.say(b"V\r\n")
    assert bench.wait(2.0) == b""
    assert np.abs(bench.pressures).max() < 0.1, "it vented when it was told"


@pytest.mark.parametrize("kind", ["drop_bytes=0.02", "corrupt=0.02", "merge_lines=0.2"])
def test_a_bad_line_spoils_about_as_many_bytes_as_it_should(kind: str) -> None:
    schedule = FaultSchedule()
    line = FaultyLine(schedule, seed=1)
    sent = STREAM * 200
    assert line.to_host(sent) == line.to_board(sent) == sent
    schedule.inject(parse_fault(kind))
    heard = line.to_host(sent)
    assert line.to_board(sent) == sent, "the other direction is sound"
    if kind.startswith("corrupt"):
        spoilt = np.count_nonzero(np.frombuffer(heard, np.uint8) != np.frombuffer(sent, np.uint8)) / len(sent)
    elif kind.startswith("drop"):
        spoilt = 1.0 - len(heard) / len(sent)
    else:
        assert heard.replace(b"\r\n", b"") == sent.replace(b"\r\n", b"")
        spoilt = 1.0 - heard.count(b"\r\n") / 200
    assert spoilt == pytest.approx(float(kind.split("=")[1]), rel=0.4)
    assert [event.event for event in schedule.events()] == ["starts", "shows"]


@pytest.mark.parametrize("kind", ["drop_request_bytes=0.3", "corrupt_requests=0.3"])
def test_requests_can_be_spoilt_too(kind: str) -> None:
    schedule = FaultSchedule()
    line = FaultyLine(schedule, seed=1)
    schedule.inject(parse_fault(kind))
    assert line.to_board(b"T=4.00\r\n" * 10) != b"T=4.00\r\n" * 10
    assert line.to_host(STREAM) == STREAM


def test_a_stuck_valve_keeps_its_chamber_while_the_others_vent() -> None:
    bench = Bench()
    bench.inject("stuck_valve=3")
    bench.say(b"V\r\n")
    bench.wait(1.5)
    kept = bench.pressures
    assert kept[3] > 3.0
    assert np.abs(np.delete(kept, 3)).max() < 0.1
    bench.schedule.clear()
    bench.wait(1.5)
    assert bench.pressures[3] < 0.1, "freed, it vents"


def test_a_stuck_valve_lets_nothing_in() -> None:
    bench = Bench(target=0.0)
    bench.inject("stuck_valve=3")
    bench.say(b"SC=3\r\nT=10.00\r\n")
    bench.wait(1.0)
    assert bench.pressures[3] < 0.1


def test_a_leak_lowers_a_held_pressure_and_costs_the_pump_more() -> None:
    bench = Bench(target=20.0)
    bench.inject("leak=2:0.3")
    bench.wait(3.0)
    leaking, sound = bench.pressures[2], bench.pressures[4]
    assert leaking < sound - 1.0
    assert bench.board.board.channels.inflate[2] > 0.5


def test_behind_a_blocked_tube_the_chamber_does_not_follow_the_sensor() -> None:
    bench = Bench()
    bench.inject("blocked_tube=5+3")
    bench.say(b"V\r\n")
    bench.wait(0.5)
    assert bench.board.board.channels.pressure[5] < 0.1, "the sensor says that it has vented"
    assert bench.pressures[5] > 3.5, "the chamber has not"
    bench.wait(4.5)
    assert bench.pressures[5] < 0.1, "open again, it vents through the tube"


def test_opening_a_blocked_tube_mixes_the_air_before_and_behind_it() -> None:
    bench = Bench()
    channels = bench.board.board.channels
    blocked = np.arange(10) == 5
    channels.block(blocked)
    channels.pressure[5] = 14.0
    behind = channels.chamber_pressure[5]
    channels.block(np.zeros(10, dtype=bool))
    assert behind == pytest.approx(4.0, abs=0.5)
    assert channels.chamber_pressure[5] == channels.pressure[5] == pytest.approx(0.9 * behind + 0.1 * 14.0)


def test_requests_to_vent_are_seen_on_the_wire_in_any_pieces() -> None:
    bench = Bench()
    for piece in (b"SC=3\r\nV", b"\r", b"\nAT+V\r\nVV\r\n", b"V\r\nV\r\n"):
        bench.say(piece)
    assert len(bench.board.vent_times) == 3


def test_a_pulled_plug_takes_the_port_away_and_brings_it_back(tmp_path) -> None:
    schedule = FaultSchedule()
    schedule.inject(parse_fault("slow_boot=0"))
    terminal = PseudoTerminal(Firmware(PLANT), tmp_path / "openpneu", schedule)
    terminal.start()
    try:
        with serial.Serial(str(terminal.link), 115200, timeout=2.0) as port:
            time.sleep(0.1)
            port.write(b"SC=1\r\nT=3.00\r\nC\r\n")
            time.sleep(1.0)
            schedule.inject(parse_fault("disconnect+0.5"))
            with pytest.raises((serial.SerialException, OSError)):
                deadline = time.monotonic() + 10.0
                while time.monotonic() < deadline:
                    port.write(b"AT\r\n")
                    if port.read_until(b"\r\n") == b"":
                        raise serial.SerialException("nothing comes any more")
            assert not terminal.link.is_symlink()
        assert terminal.firmware.pressures()[1] > 2.0, "the board has its own supply: it goes on regulating"
        deadline = time.monotonic() + 10.0
        while not terminal.link.is_symlink() and time.monotonic() < deadline:
            time.sleep(0.02)
        with serial.Serial(str(terminal.link), 115200, timeout=3.0) as port:
            time.sleep(0.1)
            port.write(b"AT\r\n")
            assert port.read_until(b"\r\n") == b"OK;Successful\r\n"
    finally:
        terminal.stop()
    assert terminal.failure is None
    told = [event.event for event in schedule.events() if event.fault.kind.name == "disconnect"]
    assert told == ["starts", "shows", "ends"]


NAMES = ["m01", "m02", "m03", "b1"]
PLACES = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mocap_swap", PLACES[[1, 0, 2, 3]]),
        ("mocap_swap=m02", PLACES[[0, 2, 1, 3]]),
        ("mocap_swap=m02:b1", PLACES[[0, 3, 2, 1]]),
        ("mocap_teleport=0.5:m03", PLACES + 0.5 * np.outer(np.arange(4) == 2, [1.0, 0.0, 0.0])),
        ("mocap_occlude=0.5", np.where((np.arange(4) < 2)[:, None], np.nan, PLACES)),
    ],
)
def test_faults_of_motion_capture(text: str, expected: np.ndarray) -> None:
    schedule = FaultSchedule()
    np.testing.assert_array_equal(faulty_markers(PLACES, NAMES, schedule), PLACES)
    schedule.inject(parse_fault(text))
    np.testing.assert_array_equal(faulty_markers(PLACES, NAMES, schedule), expected)
    assert [event.event for event in schedule.events()] == ["starts", "shows"]


def test_silent_motion_capture_gives_no_frame() -> None:
    schedule = FaultSchedule()
    schedule.inject(parse_fault("mocap_silent"))
    assert faulty_markers(PLACES, NAMES, schedule) is None


def test_a_marker_that_is_not_there_is_rejected() -> None:
    with pytest.raises(SoftformError, match="no marker 'm99'"):
        check_marker_names(parse_fault("mocap_swap=m01:m99"), NAMES)


def exported(folder, *texts: str):
    schedule = FaultSchedule()
    for text in texts:
        schedule.inject(parse_fault(text))
    points = np.random.default_rng(0).uniform(-0.1, 0.1, (200, 3))
    scan = Scan(points, np.tile([0.0, 0.0, 1.0], (200, 1)), np.zeros(200, bool))
    path = export_faulty_scan(folder, scan, 1000.0, 5, schedule)
    return path, [event.event for event in schedule.events()]


def test_scans_without_fault_are_whole_and_nothing_shows(tmp_path) -> None:
    path, events = exported(tmp_path)
    assert len(read_shape(path, "mm").points) == 200
    assert events == []


def test_scans_with_nan_points(tmp_path) -> None:
    path, events = exported(tmp_path, "scan_nan=0.25")
    body = path.read_bytes().split(b"end_header\n")[1]
    assert np.isnan(np.frombuffer(body, "<f4").reshape(200, 6)[:, 0]).sum() == 50
    assert events == ["starts", "shows"]


def test_truncated_and_empty_scans(tmp_path) -> None:
    whole = exported(tmp_path)[0].stat().st_size
    assert exported(tmp_path, "scan_truncated=0.25")[0].stat().st_size == pytest.approx(0.25 * whole, abs=1)
    assert exported(tmp_path / "new", "scan_empty")[0].stat().st_size == 0


def test_a_scan_that_is_written_slowly_is_seen_in_part(tmp_path, monkeypatch) -> None:
    whole = exported(tmp_path)[0]
    data, seen = whole.read_bytes(), []
    whole.unlink()
    monkeypatch.setattr(
        "softform_rig.surface_scans.time.sleep", lambda _: seen.append(next(tmp_path.glob("*.ply")).stat().st_size)
    )
    path, _ = exported(tmp_path, "scan_partial_write")
    assert seen == [len(data) // 2]
    assert path.read_bytes() == data
