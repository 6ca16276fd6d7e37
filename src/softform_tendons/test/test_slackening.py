"""The driver's state machine over an emulated bus without a terminal, by a clock that the test steps."""

from types import SimpleNamespace

import numpy as np
import pytest
from stepped_motors import SteppedClock, Wire

from softform_actuation.assembly import served_by_devices
from softform_actuation.device import DeviceLostError, UnsafeError, never
from softform_actuation.latch import Latch
from softform_actuation.lease import Asked, Grant
from softform_actuation.states import DriverReport, DriverSettings, State
from softform_actuation.statistics import LoopStatistics
from softform_actuation.supervisor import Supervisor
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_rig.motor_emulation import MotorErrors, make_motors
from softform_rig.tendon_motor import TICKS_A_TURN
from softform_tendons.bus import Bus
from softform_tendons.tendon_bus import TendonBus

pytestmark = pytest.mark.slow

ROBOT = load_robot("tendon_rod")
BENT = ROBOT.actuators_of(np.array([0.008, 0.0, 0.001]))
PERIOD = 0.02  # s


class Lab:
    """Motors, device and state machine; the test turns the driver's loop."""

    def __init__(self, folder: object) -> None:
        self.clock = SteppedClock()
        self.bus = make_motors(ROBOT, ROBOT.devices[0], MotorErrors())
        self.wire = Wire(self.clock, self.bus)
        (served,) = served_by_devices(ROBOT)
        self.device = TendonBus(served, self.wire, 1_000_000, folder / "homes.json")  # type: ignore[operator]
        self.reports: list[DriverReport] = []
        self.supervisor = Supervisor(
            [(self.device, served)],
            ROBOT,
            DriverSettings(),
            LoopStatistics(),
            self.reports.append,
            lambda readings: None,
            Latch(),
        )
        self.grant = Grant(0, 0)

    @property
    def pulls(self) -> Array:
        return self.bus.actuator_values(ROBOT.devices[0].channels)

    def run(self, seconds: float, goal: Array | None = None) -> None:
        """Turn the loop as the driver's thread does, and command the goal meanwhile."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            if goal is not None:
                self.supervisor.commands.put("test", self.grant, goal)
            try:
                self.supervisor.tick(self.clock.now(), never)
                self.supervisor.watch_until(self.clock.now() + PERIOD, never)
            except SoftformError as error:
                self.supervisor.fault(str(error))

    def asked(self) -> Asked:
        """Just now."""
        return Asked(0.0, self.supervisor.commands.epoch)

    def bend(self) -> None:
        self.run(1.0)
        self.grant = self.supervisor.acquire("test", 0, self.asked(), ROBOT.command_fingerprint())
        self.run(1.5, BENT)
        assert self.supervisor.state is State.RUNNING, self.supervisor.reason
        np.testing.assert_allclose(self.pulls, BENT, atol=2e-4)

    def close(self) -> None:
        self.supervisor.is_active = False
        self.supervisor.end()
        self.supervisor.close()

    def block(self, *, is_blocked: bool) -> None:
        self.bus.motors[1].blocked = is_blocked


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.supervisor.open(never)
    lab.supervisor.begin(never)
    lab.supervisor.activate(never)
    return lab


@pytest.mark.parametrize("how", ["stale", "released"])
def test_a_tendon_that_does_not_slacken_is_a_fault_and_is_not_held_where_it_is(lab, how):
    lab.bend()
    lab.block(is_blocked=True)
    if how == "released":
        lab.supervisor.release("test", lab.grant)
    lab.run(1.8)
    assert lab.supervisor.state is State.FAULT
    assert "t1 (id 1) may not be slack. Free the motor" in lab.supervisor.report.reason
    assert lab.bus.motors[1].goal < lab.bus.motors[1].position - 100, "it is held instead of slackened"
    with pytest.raises(SoftformError, match="may not be slack|t1. has shut down: overloaded"):
        lab.run(0.6)
        lab.supervisor.reset(lab.asked(), never)
    lab.block(is_blocked=False)
    lab.bus.motors[1].reboot()
    lab.run(1.5)
    lab.supervisor.reset(lab.asked(), never)
    lab.bend()


def test_a_tendon_that_does_not_slacken_at_a_stop_is_named_by_the_report_until_it_does(lab):
    lab.bend()
    lab.block(is_blocked=True)
    lab.supervisor.stop()
    lab.run(1.3)
    assert lab.reports[-1].reason.startswith("stopped by request")
    assert "t1 (id 1) may not be slack" in lab.reports[-1].reason
    lab.block(is_blocked=False)
    lab.run(1.5)
    assert "may not be slack" not in lab.reports[-1].reason


def test_a_tendon_that_does_not_slacken_when_the_driver_is_deactivated_is_a_fault(lab):
    lab.bend()
    lab.block(is_blocked=True)
    lab.supervisor.is_active = False
    with pytest.raises(SoftformError, match=r"\(t1\)|t1 \(id 1\)"):
        lab.supervisor.rest_inactive(never)
    lab.run(1.3)
    assert lab.supervisor.state is State.FAULT and "may not be slack" in lab.supervisor.report.reason


def test_tendons_that_slacken_in_their_time_are_no_fault(lab):
    lab.bend()
    lab.supervisor.release("test", lab.grant)
    lab.run(0.58)
    assert lab.supervisor.state is State.SAFE and lab.pulls.max() < 2e-4
    lab.run(0.2)
    assert lab.supervisor.state is State.SAFE and "gave its lease up" in lab.supervisor.reason
    lab.bend()


def test_motors_that_are_found_tight_and_without_power_are_slackened_when_the_driver_is_activated(lab):
    lab.close()
    motor = lab.bus.motors[3]
    motor.torque_on, motor.position = False, motor.position + 150.0
    lab.supervisor.open(never)
    lab.supervisor.begin(never)
    lab.run(2.5)
    assert lab.supervisor.state is State.MAKING_SAFE and lab.pulls[2] > ROBOT.safe[2] + 1e-3, "nothing moves before"
    lab.supervisor.activate(never)
    assert lab.pulls[2] < ROBOT.safe[2] + 2e-4
    lab.bend()


def test_a_motor_that_lost_its_power_is_slackened_once_it_has_it_again_and_then_a_reset_goes_on(lab):
    lab.close()
    motor = lab.bus.motors[1]
    motor.home, motor.position = motor.home + TICKS_A_TURN, motor.position + TICKS_A_TURN
    lab.supervisor.open(never)
    lab.supervisor.begin(never)
    lab.supervisor.activate(never)
    lab.bend()
    motor.hardware_error = 1 << 5  # shut down as overloaded, where it stands
    lab.run(2.0)
    assert lab.supervisor.state is State.FAULT and "may not be slack" in lab.supervisor.report.reason
    motor.reboot()  # its supply was cut for a moment: it forgets its turns
    lab.run(2.5)
    assert lab.pulls[0] < ROBOT.safe[0] + 2e-4
    lab.supervisor.reset(lab.asked(), never)
    lab.bend()


def test_a_motor_that_is_doubled_while_it_is_driven_is_called_so(lab):
    lab.bend()
    lab.bus.suffer(lambda kind: [SimpleNamespace(channel=2)] if kind == "doubled_motor" else [])
    with pytest.raises(UnsafeError, match="Two motors may have the id 2"):
        for _ in range(20):
            lab.device.read(PERIOD)


def test_one_lost_answer_neither_fails_a_start_nor_leaves_a_slackening_unconfirmed(lab):
    lab.wire.lost_answers = 1
    lab.device.begin()
    lab.wire.lost_answers = 1
    assert lab.device.make_safe()
    lab.clock.sleep(0.6)
    lab.wire.lost_answers = 1
    assert lab.device.check().complaint == ""


def test_a_bus_that_is_silent_for_half_a_second_is_not_lost(lab):
    lab.wire.lost_answers = 6
    assert lab.device.make_safe()
    lab.wire.lost_answers = 14
    assert lab.device.check().complaint == "" and lab.wire.lost_answers == 0
    lab.wire.lost_answers = 1000
    before = lab.clock.now()
    with pytest.raises(DeviceLostError, match="No motor answers"):
        lab.device.check()
    assert lab.clock.now() < before + 1.0
    before = lab.clock.now()
    assert not lab.device.make_safe()
    assert lab.clock.now() < before + 0.5


def test_motors_that_are_not_heard_for_most_of_a_second_are_found(lab):
    motors = ROBOT.devices[0].channels
    lab.wire.lost_answers = 5 * len(motors)
    before = lab.clock.now()
    models, damaged = Bus(lab.wire).find(motors, never)
    assert sorted(models) == sorted(motors) and damaged == [] and lab.clock.now() > before + 0.5


def test_a_driver_that_stood_still_pulls_nothing_behind_its_guardian(lab):
    lab.bend()
    assert lab.device.set_targets(BENT, never)
    goals = [motor.goal for motor in lab.bus.motors.values()]
    lab.clock.at += 1.7
    assert not lab.device.set_targets(ROBOT.safe, never)
    assert [motor.goal for motor in lab.bus.motors.values()] == goals
