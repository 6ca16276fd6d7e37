"""The script of injections, carried out one after another on one stack; what was done is kept, so that it goes on."""

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_system_tests.fault_injection import tendon_faults
from softform_system_tests.fault_injection.clock_faults import CLOCK_JUMPS
from softform_system_tests.fault_injection.command_faults import TWO_COMMANDERS, WRONG_COMMANDS
from softform_system_tests.fault_injection.device_faults import MOCAP, SCAN, SERIAL
from softform_system_tests.fault_injection.disk_faults import FULL_DISKS
from softform_system_tests.fault_injection.driver_starts import CHANGED_RUNS, INTERRUPTED_STARTS
from softform_system_tests.fault_injection.fault_class import FaultClass
from softform_system_tests.fault_injection.held_shape_faults import HELD_SHAPE
from softform_system_tests.fault_injection.outcome import Ledger, Outcome, judged
from softform_system_tests.fault_injection.process_faults import FROZEN, KILL_9, SIGTERM
from softform_system_tests.fault_injection.rig_stack import RigStack
from softform_system_tests.fault_injection.stale_bags import STALE_BAGS
from softform_system_tests.fault_injection.stored_data import readable_messages
from softform_system_tests.fault_injection.tendon_stack import TendonStack

CLASSES: Mapping[str, FaultClass] = {
    "commands": WRONG_COMMANDS,
    "two commanders": TWO_COMMANDERS,
    "held shape": HELD_SHAPE,
    "stale bag": STALE_BAGS,
    "frozen": FROZEN,
    "start": INTERRUPTED_STARTS,
    "changed runs": CHANGED_RUNS,
    "serial": SERIAL,
    "mocap": MOCAP,
    "scan": SCAN,
    "clock jump": CLOCK_JUMPS,
    "disk full": FULL_DISKS,
    "kill -9": KILL_9,
    "SIGTERM": SIGTERM,
}
SHARES = {
    tendon_faults.NAME: 8,
    "commands": 60,
    "two commanders": 9,
    "held shape": 8,
    "stale bag": 6,
    "frozen": 6,
    "start": 8,
    "changed runs": 4,
    "serial": 52,
    "mocap": 30,
    "scan": 28,
    "clock jump": 6,
    "disk full": 6,
    "kill -9": 14,
    "SIGTERM": 14,
}
"""Injections of each class in a script of the default length, cheap ones more often."""

DEFAULT_COUNT = sum(SHARES.values())


def script(count: int, only: str | None = None) -> list[tuple[str, str]]:
    """Class (or `only` one) and variant of each injection: the classes by their shares, the variants of each in turn.

    Raises:
        SoftformError: If there is no such class.
    """
    if only is not None and only not in SHARES:
        raise SoftformError(f"There is no class '{only}'.", f"Use one of: {', '.join(SHARES)}.")
    shares = SHARES if only is None else {only: 1}
    variants = {name: itertools.cycle(variants_of(name)) for name in shares}
    done = dict.fromkeys(shares, 0)
    order = []
    for _ in range(count):
        name = min(shares, key=lambda each: (done[each] + 1) / shares[each])
        done[name] += 1
        order.append((name, next(variants[name])))
    return order


def run(order: Sequence[tuple[str, str]], ledger: Ledger, folder: Path, say: Callable[[str], None]) -> list[Outcome]:
    """Carry out what the ledger lacks, that of tendons last; returns the outcomes of all.

    Raises:
        SoftformError: If the stack does not come up.
    """
    left = [number for number in range(len(order)) if number not in ledger.outcomes]
    of_tendons = [number for number in left if order[number][0] == tendon_faults.NAME]
    of_air = [number for number in left if number not in of_tendons]
    with tqdm(total=len(order), initial=len(order) - len(left), unit="fault", desc="bench rig") as bar:

        def carry_out(number: int, stack: RigStack | TendonStack) -> None:
            fault_class, variant = order[number]
            bar.set_postfix_str(f"{fault_class}: {variant}")
            outcome = _inject(stack, fault_class, variant)
            ledger.keep(number, outcome)
            if not outcome.safe or outcome.hung or outcome.lost_frames:
                say(f"  {fault_class}, {variant}: {outcome.found}")
            bar.update()

        if of_air:
            with RigStack(load_robot("membrane"), folder) as rig_stack:
                for number in of_air:
                    carry_out(number, rig_stack)
        if of_tendons:
            with TendonStack(folder) as tendon_stack:
                for number in of_tendons:
                    carry_out(number, tendon_stack)
    return [ledger.outcomes[number] for number in range(len(order))]


def variants_of(fault_class: str) -> tuple[str, ...]:
    """What a class injects."""
    return tendon_faults.VARIANTS if fault_class == tendon_faults.NAME else CLASSES[fault_class].variants


def _inject(stack: RigStack | TendonStack, fault_class: str, variant: str) -> Outcome:
    started = time.monotonic()
    try:
        if isinstance(stack, TendonStack):
            outcome = tendon_faults.inject(stack, variant)
        else:
            outcome = CLASSES[fault_class].inject(stack, variant)
    except SoftformError as error:
        outcome = judged(str(error), hung=True)
    try:
        stack.bring_back()
    except SoftformError as error:
        outcome = replace(outcome, hung=True, found=f"{outcome.found}; then: {error}")
        stack.relaunch()
        stack.bring_back()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    seconds = round(time.monotonic() - started, 2)
    return replace(outcome, fault_class=fault_class, variant=variant, seconds=seconds, load=round(load, 2))


def unreadable_bags(folder: Path) -> list[str]:
    """Recordings of a run that wrote into `folder` which hold no readable message."""
    return [str(bag) for bag in sorted((folder / "bags").glob("*")) if readable_messages(bag) == 0]
