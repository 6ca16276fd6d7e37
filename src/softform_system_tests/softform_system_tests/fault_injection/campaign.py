"""The script of injections, carried out one after another on one stack; what was done is kept, so that it goes on."""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_system_tests.fault_injection import (  # noqa: F401 - each makes its classes of faults known
    arm_faults,
    command_faults,
    computer_faults,
    device_faults,
    driver_starts,
    held_shape_faults,
    other_programs,
    process_faults,
    queued_requests,
    rest_faults,
)
from softform_system_tests.fault_injection.arm_stack import ArmStack
from softform_system_tests.fault_injection.driven_stack import DrivenStack
from softform_system_tests.fault_injection.fault_class import CLASSES
from softform_system_tests.fault_injection.hazards import SHARES
from softform_system_tests.fault_injection.lost_computer import DEAD_MAN
from softform_system_tests.fault_injection.outcome import Ledger, Outcome, judged
from softform_system_tests.fault_injection.rig_stack import RigStack
from softform_system_tests.fault_injection.stored_data import readable_messages
from softform_system_tests.fault_injection.tendon_faults import HOLD_LIMIT

Stack = RigStack | DrivenStack | ArmStack
STACKS: Mapping[str, Callable[[Path], Stack]] = {
    "rig": lambda folder: RigStack(load_robot("membrane"), folder),
    "dead-man": lambda folder: DrivenStack(folder, "dead_man", "membrane", devices=[DEAD_MAN]),
    "tendons": lambda folder: DrivenStack(folder, "tendons", "tendon_rod"),
    "holding": lambda folder: DrivenStack(
        folder, "holding", "tendon_rod", {"safe_action": "hold", "hold_limit": HOLD_LIMIT}
    ),
    "arms": ArmStack,
}
"""What is launched one after the other, each for the classes that name it."""

DEFAULT_COUNT = sum(SHARES.values())


def script(count: int, only: str | None = None) -> list[tuple[str, str]]:
    """Class (or `only` one) and variant of each injection: the classes by their shares, the variants of each in turn.

    Raises:
        SoftformError: If there is no such class.
    """
    if only is not None and only not in SHARES:
        raise SoftformError(f"There is no class '{only}'.", f"Use one of: {', '.join(SHARES)}.")
    shares = SHARES if only is None else {only: 1}
    variants = {name: itertools.cycle(CLASSES[name].variants) for name in shares}
    done = dict.fromkeys(shares, 0)
    order = []
    for _ in range(count):
        name = min(shares, key=lambda each: (done[each] + 1) / shares[each])
        done[name] += 1
        order.append((name, next(variants[name])))
    return order


def run(order: Sequence[tuple[str, str]], ledger: Ledger, folder: Path, say: Callable[[str], None]) -> list[Outcome]:
    """Carry out what the ledger lacks, stack by stack; returns the outcomes of all.

    Raises:
        SoftformError: If a stack does not come up.
    """
    left = [number for number in range(len(order)) if number not in ledger.outcomes]
    with tqdm(total=len(order), initial=len(order) - len(left), unit="fault", desc="bench rig") as bar:
        for name, make in STACKS.items():
            numbers = [number for number in left if CLASSES[order[number][0]].stack == name]
            with make(folder) if numbers else contextlib.nullcontext() as stack:
                for number in numbers:
                    assert stack is not None
                    fault_class, variant = order[number]
                    bar.set_postfix_str(f"{fault_class}: {variant}")
                    outcome = _inject(stack, fault_class, variant)
                    ledger.keep(number, outcome)
                    if not outcome.safe or outcome.hung or outcome.lost_frames:
                        say(f"  {fault_class}, {variant}: {outcome.found}")
                    bar.update()
    return [ledger.outcomes[number] for number in range(len(order))]


def _inject(stack: Stack, fault_class: str, variant: str) -> Outcome:
    started = time.monotonic()
    try:
        outcome = CLASSES[fault_class].inject(stack, variant)
    except SoftformError as error:
        outcome = judged(str(error), hung=True)
    try:
        stack.bring_back()
    except SoftformError as error:
        outcome = replace(outcome, hung=True, found=f"{outcome.found}; then: {error}")
        stack.relaunch()
        stack.bring_back()
    # Nobody can measure a chamber whose tube is kinked, for the sensor is on the board, or whose sensor stands still.
    kind, _, channel = variant.partition("=")
    blind = [int(channel)] if kind in ("blocked_tube", "stuck_sensor") else []
    if wrong := stack.take_false_reports(blind):
        found = f"{outcome.found}; it was said to be safe and was not: {wrong[0]}"
        outcome = replace(outcome, safe=False, false_reports=len(wrong), found=found)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    seconds = round(time.monotonic() - started, 2)
    return replace(outcome, fault_class=fault_class, variant=variant, seconds=seconds, load=round(load, 2))


def unreadable_bags(folder: Path) -> list[str]:
    """Recordings of a run that wrote into `folder` which cannot be read."""
    return [str(bag) for bag in sorted((folder / "bags").glob("*")) if readable_messages(bag) is None]
