"""The conformance test of device families, for the bus of tendon motors: the emulated one, on a pseudo-terminal."""

from collections.abc import Iterator

import numpy as np
import pytest

from softform_actuation import conformance
from softform_actuation.state_files import OVERRIDE
from softform_core.robots import load_robot
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.motor_emulation import MotorErrors, make_motors
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_tendons.settings import SLACKENED_WITHIN

GOAL = np.array([0.004, -0.001, -0.0005, 0.001])
BUSY_MACHINE = 0.5  # s
NEAR = 2e-4  # m


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[conformance.Bench]:
    """One bus and one driver for all checks, which are made in their order."""
    robot, folder = load_robot("tendon_rod"), tmp_path_factory.mktemp("bus")
    (described,) = robot.devices
    bus = make_motors(robot, described, MotorErrors())
    bus.advance(0.1)
    schedule = FaultSchedule()
    terminal = PseudoTerminal(bus, folder / "port", schedule)
    terminal.start()

    bench = conformance.Bench(
        robot=robot.name,
        values={"port": str(terminal.link)},
        goal=GOAL,
        tolerance=NEAR,
        true_values=lambda: bus.actuator_values(described.channels),
        is_safe=lambda: bool((bus.actuator_values(described.channels) - robot.safe).max() < NEAR),  # or slacker
        safe_seconds=SLACKENED_WITHIN + BUSY_MACHINE,
        pull_cable=terminal.pull_cable,
        plug_in=terminal.plug_in,
        block=lambda: schedule.inject(parse_fault(f"blocked_motor={described.channels[-1]}")),
        free=schedule.clear,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OVERRIDE, str(folder))
        yield bench
        bench.close()
    terminal.stop()


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_conformance(check: conformance.Check, bench: conformance.Bench) -> None:
    check(bench)
