"""The conformance test of device families, for arms, on the rig's emulated controller."""

from collections.abc import Iterator

import numpy as np
import pytest
from stepped_arms import GOAL, PATH, ROBOT, SETTINGS

from softform_actuation import conformance
from softform_actuation.state_files import OVERRIDE
from softform_rig.arm_emulation import ArmEmulation, ArmErrors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.pseudo_terminal import PseudoTerminal


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[conformance.Bench]:
    """One controller and one driver for all checks, which are made in their order."""
    folder, (described,) = tmp_path_factory.mktemp("arms"), ROBOT.devices
    offsets = np.linspace(-3e-4, 3e-4, 12).tolist()
    controller = ArmEmulation().make(ROBOT, described, ArmErrors(offset=offsets), SETTINGS)
    schedule = FaultSchedule()
    terminal = PseudoTerminal(controller, folder / "port", schedule)
    terminal.start()
    bench = conformance.Bench(
        robot=str(PATH),
        values={"port": str(terminal.link)},
        goal=GOAL,
        tolerance=ROBOT.actuator_tolerances.settle,
        true_values=lambda: controller.actuator_values(described.channels),
        is_safe=lambda: controller.is_held,
        safe_seconds=1.0,
        pull_cable=terminal.pull_cable,
        plug_in=terminal.plug_in,
        block=lambda: schedule.inject(parse_fault(f"slipping_brake={described.channels[-1]}")),
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
