"""Driver or guardian frozen (SIGSTOP): neither is left without the other unnoticed."""

import time
from dataclasses import replace

import psutil

from softform_actuation.guardian import SILENCE_SECONDS
from softform_system_tests.fault_injection.fault_class import disturbance, not_latched, undisturbed, vents
from softform_system_tests.fault_injection.outcome import Outcome
from softform_system_tests.fault_injection.process_faults import is_guardian
from softform_system_tests.fault_injection.rig_stack import DRIVER, RigStack
from softform_system_tests.fault_injection.stack_processes import is_running
from softform_system_tests.fault_injection.stack_watch import wait_for

_NOTICED_SECONDS = 5.0
_FROZEN_SECONDS = 5.0


class FrozenProcesses:
    """Who is frozen, and what happens then."""

    name = "frozen"
    variants = ("guardian", "guardian, then kill -9 of the driver", "driver for 5 s")

    def inject(self, stack: RigStack, variant: str) -> Outcome:
        """Freeze it."""
        driver = stack.required(DRIVER)
        return self._driver(stack, variant, driver) if variant == self.variants[-1] else self._guardian(stack, variant)

    def _guardian(self, stack: RigStack, variant: str) -> Outcome:
        """The driver starts another one in time, which does what the frozen one could not."""
        driver, began = stack.required(DRIVER), time.monotonic()
        frozen = _guardians(driver)
        for guardian in frozen:
            guardian.suspend()

        def is_replaced() -> bool:
            return bool(_guardians(driver)) and not any(map(is_running, frozen))

        if not frozen or not wait_for(is_replaced, _NOTICED_SECONDS):
            for guardian in filter(is_running, frozen):
                guardian.resume()
            return Outcome(self.name, variant, False, "the driver did not notice that its guardian is frozen")
        found = f"noticed after {time.monotonic() - began:.1f} s"
        if variant == "guardian":
            return undisturbed(stack, self.name, variant, began, found)
        if (wrong := disturbance(stack, began)) is not None:
            return Outcome(self.name, variant, False, wrong)
        moment = time.monotonic()
        driver.kill()
        outcome = vents(stack, self.name, variant, moment, moment, latches=False)
        return replace(outcome, found=f"{found}; {outcome.found}")

    def _driver(self, stack: RigStack, variant: str, driver: psutil.Process) -> Outcome:
        """Its guardian vents, and the driver is at fault when it wakes up."""
        moment = time.monotonic()
        driver.suspend()
        try:
            outcome = vents(stack, self.name, variant, moment, moment + SILENCE_SECONDS, latches=False)
            time.sleep(max(0.0, moment + _FROZEN_SECONDS - time.monotonic()))
        finally:
            driver.resume()
        if not outcome.safe:
            return outcome
        vent = stack.wire.first_vent(moment, 0.0)
        assert vent is not None
        wrong = not_latched(stack, vent.time)
        found = f"{outcome.found}, but {wrong}" if wrong else f"{outcome.found}; latched when it woke up"
        return replace(outcome, safe=wrong is None, found=found)


def _guardians(driver: psutil.Process) -> list[psutil.Process]:
    return [child for child in driver.children() if is_guardian(child) and is_running(child)]
