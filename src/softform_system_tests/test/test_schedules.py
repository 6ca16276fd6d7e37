"""Schedules in virtual time: they run the same each time, find what was wrong, and find nothing now."""

import logging

import pytest

from softform_actuation.device import Rest
from softform_actuation.lease import Asked, LeasedCommands
from softform_actuation.supervisor import Supervisor
from softform_ik.robot.commander import Commander
from softform_system_tests.schedules.schedule import Item, Schedule, draw, shrunk
from softform_system_tests.schedules.simulated_board import SimulatedBoard
from softform_system_tests.schedules.simulated_stack import SimulatedStack

QUEUED_GOAL = Schedule(
    8737,
    (
        Item("freeze", 3.75, "collector", 0, 2.5),
        Item("goal", 4.57, "collector", 0, 1.42),
        Item("stop", 5.05),
        Item("reset", 5.62),
    ),
)
"""A2: a goal lay in the queue of a frozen commander while the robot was stopped and reset."""

GOAL_AGAIN = Schedule(
    4151,
    (
        Item("duplicate", 0.0, "goal", 1, 2.5),
        Item("stop", 1.22),
        Item("goal", 2.47, "planner", 0, 0.96),
        Item("reset", 2.75),
    ),
)
"""A2: a goal came once more after a reset."""

OLD_GOAL = Schedule(173, (Item("freeze", 2.79, "planner", 0, 3.5), Item("goal", 3.19, "planner", 0, 0.2)))
"""A3: a goal was begun four seconds after it had been asked for."""

UNSEEN_STOP = Schedule(
    55, (Item("delay", 0.0, "reset", 1, 0.5), Item("stop", 1.0), Item("reset", 1.6), Item("stop", 1.7))
)
"""A11: a reset cleared a stop that came after it was asked for."""

STUCK = Schedule(
    9, (Item("goal", 1.0, "planner", 0, 0.2), Item("stick", 1.8), Item("stop", 2.2), Item("deactivate", 3.0))
)
"""A1: a stop was answered as safe, and then a deactivation, beside a full chamber."""

SLEEP_AT_REST = Schedule(
    600,
    (
        Item("sleep", 4.17, "", 0, 4.0),
        Item("reset", 5.14),
        Item("goal", 5.45, "planner", 0, 0.49),
        Item("sleep", 5.65, "", 0, 4.0),
    ),
)
"""The computer slept between a goal and its first command, and the driver was at rest."""

ACTIVATED_TWICE = Schedule(895, (Item("activate", 2.47), Item("goal", 2.56, "planner", 0, 0.34), Item("activate", 3.1)))
"""A driver that drove was activated once more: it made safe and drove on."""

ASKED_IN_SLEEP = Schedule(
    83854, (Item("goal", 4.07, "planner", 0, 0.49), Item("sleep", 4.45, "", 0, 1.8), Item("activate", 4.46))
)
"""A request waited while the computer slept, and was answered before the driver looked how long it had stood still."""

FOUND = (QUEUED_GOAL, GOAL_AGAIN, OLD_GOAL, UNSEEN_STOP, STUCK, SLEEP_AT_REST, ACTIVATED_TWICE, ASKED_IN_SLEEP)


@pytest.fixture(autouse=True)
def quiet():
    """A driver at fault says so, and here it is at fault all day."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("schedule", FOUND, ids=lambda schedule: str(schedule.seed))
def test_what_was_found_once_stays_mended(schedule):
    assert SimulatedStack(schedule).run() == []


def no_epoch(patch):
    patch.setattr(LeasedCommands, "begin_epoch", lambda self: None)


def no_epoch_nor_age(patch):
    no_epoch(patch)
    no_age(patch)


def no_age(patch):
    patch.setattr("softform_system_tests.schedules.simulated_stack.require_recent", lambda *told: None)
    patch.setattr(Commander, "note_alive", lambda self: False)


def no_measuring(patch):
    check = SimulatedBoard.check
    patch.setattr(SimulatedBoard, "check", lambda self: Rest((rest := check(self)).values, rest.at_rest | True))


def any_reset(patch):
    reset = Supervisor.reset
    patch.setattr(
        Supervisor, "reset", lambda self, asked, interrupted: reset(self, Asked(0.0, self.commands.epoch), interrupted)
    )


def no_hold_timeout(patch):
    patch.setattr(Supervisor, "_has_held_too_long", lambda self, goal, now: False)


def no_guardian(patch):
    patch.setattr("softform_system_tests.schedules.simulated_board.SimulatedGuardian._do", lambda self, action: None)


@pytest.mark.parametrize(
    ("spoil", "schedule", "promise"),
    [
        (no_epoch_nor_age, GOAL_AGAIN, "nothing queued moves"),
        (no_age, OLD_GOAL, "nothing old moves"),
        (no_measuring, STUCK, "what is reported safe is measured safe"),
        (any_reset, UNSEEN_STOP, "a reset clears what was seen"),
        (no_hold_timeout, Schedule(1, (Item("goal", 0.6, "planner", 0, 0.2),)), "holding ends"),
        (
            no_guardian,
            Schedule(1, (Item("goal", 0.6, "planner"), Item("kill at wait", 0.0, "driver", 40))),
            "a dead driver",
        ),
        (
            no_guardian,
            Schedule(1, (Item("goal", 0.6, "planner"), Item("freeze", 2.0, "driver", 0, 4.0))),
            "a frozen driver",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_driver_without_one_of_its_rules_is_found_out(monkeypatch, spoil, schedule, promise):
    spoil(monkeypatch)
    broken = SimulatedStack(schedule).run()
    assert any(one.startswith(promise) for one in broken), broken


def test_the_same_schedule_runs_the_same_way():
    for seed in (3, 302, 4133):
        first, again = SimulatedStack(draw(seed)), SimulatedStack(draw(seed))
        assert first.run() == again.run() and first.states == again.states
        assert first.driver.process.waits == again.driver.process.waits > 30


def test_a_schedule_is_shrunk_to_what_it_fails_by():
    noise = tuple(Item("goal", 3.0 + number, "collector", 0, 0.1) for number in range(3))
    schedule = Schedule(1, (Item("reset", 1.6), Item("stop", 1.7), *noise))

    def fails(tried):
        kinds = [item.kind for item in tried.items]
        return "reset" in kinds and "stop" in kinds

    assert [item.kind for item in shrunk(schedule, fails).items] == ["reset", "stop"]
