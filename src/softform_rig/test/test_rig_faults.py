"""How faults are written, and when they are on; on a clock of the test's own."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_rig.fault_kinds import Fault
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import kinds, parse_fault, parse_faults


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("text", "kind", "values", "start", "duration"),
    [
        ("stall@10+2", "stall", (), 10.0, 2.0),
        ("corrupt=0.01@5", "corrupt", (0.01,), 5.0, math.inf),
        ("reboot@8", "reboot", (), 8.0, 0.0),
        ("disconnect@12+3", "disconnect", (), 12.0, 3.0),
        ("stuck_valve=3@6", "stuck_valve", (3.0,), 6.0, math.inf),
        ("leak=2@4", "leak", (2.0, 1.0), 4.0, math.inf),
        ("leak=2:0.5+1.5", "leak", (2.0, 0.5), 0.0, 1.5),
        ("merge_lines@0", "merge_lines", (0.5,), 0.0, math.inf),
        ("slow_boot=4", "slow_boot", (4.0,), 0.0, math.inf),
        ("mocap_swap=m01:m05@1", "mocap_swap", ("m01", "m05"), 1.0, math.inf),
        ("mocap_teleport=0.2:m03", "mocap_teleport", (0.2, "m03"), 0.0, math.inf),
        ("mocap_silent", "mocap_silent", (), 0.0, math.inf),
    ],
)
def test_a_fault_as_it_is_written(text, kind, values, start, duration) -> None:
    fault = parse_fault(text)
    assert (fault.kind.name, fault.values, fault.start, fault.duration) == (kind, values, start, duration)
    assert parse_fault(str(fault)) == fault
    of_one = parse_fault(f"left/{text}")  # of several boards or buses
    assert of_one.device == "left" and parse_fault(str(of_one)) == of_one != fault


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a fault"),
        ("stall @10", "is not a fault"),
        ("stall@10+2+3", "is not a fault"),
        ("explode@3", "There is no fault 'explode'"),
        ("stall@", "does not say when"),
        ("stall@-1", "does not say when"),
        ("stall@nan", "does not say when"),
        ("stall@1+inf", "does not say when"),
        ("/stall", "is not a fault"),
        ("left/right/stall", "is not a fault"),
        ("stall=2", "too many values"),
        ("reboot@2+3", "happens at once"),
        ("corrupt=2", "share"),
        ("corrupt=", "share"),
        ("stuck_valve", "lacks its channel"),
        ("stuck_valve=10", "channel"),
        ("stuck_valve=1.5", "whole"),
        ("leak=2:0", "time constant"),
        ("mocap_swap=:m05", "marker"),
    ],
)
def test_what_is_no_fault_is_rejected_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(SoftformError, match=why):
        parse_fault(text)


def test_empty_words_are_no_faults() -> None:
    assert [str(fault) for fault in parse_faults(["", " ", "stall@1, mute,"])] == ["stall@1", "mute@0"]


@settings(max_examples=60)
@given(st.text(max_size=40) | st.from_regex(r"[a-z_]{1,8}(=[0-9.:m]{0,6})?(@[0-9.e]{0,4})?(\+[0-9.e]{0,4})?"))
def test_any_text_is_a_fault_or_rejected(text: str) -> None:
    try:
        fault = parse_fault(text)
    except SoftformError:
        return
    assert parse_fault(str(fault)) == fault


@pytest.mark.parametrize("kind", kinds().values(), ids=kinds())
def test_every_kind_says_what_it_does_and_has_sane_defaults(kind) -> None:
    assert kind.does and kind.form.startswith(kind.name)
    for quantity in kind.values:
        assert quantity.default is None or quantity.is_name or quantity.low <= quantity.default <= quantity.high


def schedule(*texts: str) -> tuple[FaultSchedule, Clock]:
    clock = Clock()
    return FaultSchedule(parse_faults(texts), clock), clock


def kinds_on(plan: FaultSchedule) -> set[str]:
    return {kind for kind in kinds() if plan.on(kind)}


def test_planned_faults_count_from_the_beginning() -> None:
    plan, clock = schedule("stall@10+2", "leak=2@11")
    clock.now += 50.0
    assert kinds_on(plan) == set(), "nothing begins by itself"
    plan.begin()
    seen = {}
    for after in (0.0, 9.9, 10.0, 11.9, 12.0, 1e6):
        clock.now = 150.0 + after
        seen[after] = kinds_on(plan)
    assert seen == {0.0: set(), 9.9: set(), 10.0: {"stall"}, 11.9: {"stall", "leak"}, 12.0: {"leak"}, 1e6: {"leak"}}


def test_beginning_again_forgets_what_was_on() -> None:
    plan, clock = schedule("stall@1")
    plan.begin()
    plan.inject(parse_fault("mute"))
    clock.now += 5.0
    assert kinds_on(plan) == {"stall", "mute"}
    plan.begin()
    assert kinds_on(plan) == set()


def test_a_fault_of_a_moment_is_taken_once() -> None:
    plan, clock = schedule("reboot@3", "reboot@4")
    plan.begin()
    assert plan.take("reboot") == []
    clock.now += 3.5
    assert [fault.start for fault in plan.take("reboot")] == [3.0]
    assert plan.take("reboot") == []
    clock.now += 5.0
    assert [fault.start for fault in plan.take("reboot")] == [4.0]


def test_clearing_ends_what_is_on_and_drops_what_is_to_come() -> None:
    plan, clock = schedule("stall@1", "mute@9", "reboot@9")
    plan.begin()
    clock.now += 2.0
    plan.clear()
    assert kinds_on(plan) == set()
    clock.now += 10.0
    assert kinds_on(plan) == set() and plan.take("reboot") == []
    assert [(event.fault.kind.name, event.event) for event in plan.events()] == [("stall", "starts"), ("stall", "ends")]


def test_events_tell_when_a_fault_starts_first_shows_and_ends() -> None:
    plan, clock = schedule("corrupt=0.5@1+2", "reboot@2")
    plan.begin()
    assert plan.events() == []
    clock.now = 101.5
    (fault,) = plan.on("corrupt")
    plan.shows(fault)
    clock.now = 101.6
    plan.shows(fault)
    clock.now = 102.25
    plan.take("reboot")
    clock.now = 110.0
    told = [(event.fault.kind.name, event.event, event.time) for event in plan.events()]
    assert told == [
        ("corrupt", "starts", 101.0), ("corrupt", "shows", 101.5), ("reboot", "starts", 102.0),
        ("reboot", "shows", 102.25), ("corrupt", "ends", 103.0),
    ]  # fmt: skip
    assert plan.events() == []


def test_one_fault_injected_twice_is_two() -> None:
    plan, clock = schedule()
    fault: Fault = parse_fault("leak=1+1")
    plan.inject(fault)
    clock.now += 5.0
    plan.inject(fault)
    assert plan.on("leak") == [fault]
    assert [event.event for event in plan.events()] == ["starts", "ends", "starts"]
