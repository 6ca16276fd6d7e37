"""Of a body that remembers, goals and streams say that what was before is not known, until it no longer matters."""

from concurrent.futures import Executor, Future
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from served_models import served

from softform_client.driver_watch import DriverWatch
from softform_client.follow_messages import ActuatorPath, FollowGoal, ShapePath
from softform_client.plan_messages import PlanGoal
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.forward.history import HistoryKeeper
from softform_core.shapes.shape import Shape
from softform_ik.follow.follow import FollowOutcome, FollowServer
from softform_ik.goals.goal_server import unknown_past
from softform_ik.plan.plan import PlanOutcome, PlanServer
from softform_ik.reach.reach import ReachOutcome, ReachServer
from softform_ik.robot.stop_request import StopRequest
from softform_ik.stream.loop import ServoReport
from softform_ik.stream.streams import ServoStreams
from softform_interfaces.msg import ServoState
from softform_ros.goal_error import GoalCode
from softform_ros.histories import history_message

SAID = "./softform home (or ShapeClient.home) moves each actuator through 40 % of its range once"
SHAPE = Shape(np.zeros((4, 3)))
ENDED = GoalCode.NONE, ""
SERVED = [
    (ReachServer, ReachGoal(SHAPE, Mode.PLAN_ONLY), ReachOutcome(*ENDED)),
    (FollowServer, FollowGoal(ShapePath((SHAPE,))), FollowOutcome(*ENDED, *[np.empty(0)] * 4, 0.0, False)),
    (PlanServer, PlanGoal(SHAPE, SHAPE), PlanOutcome(*ENDED, None, None, 0.0, 0, False)),
]


class AtOnce(Executor):
    def submit(self, work, /, *args, **options):
        future = Future()
        future.set_result(work(*args, **options))
        return future


@pytest.fixture
def driver(robot):
    return DriverWatch(robot, 60.0)


@pytest.fixture
def models(pipeline, remembering):
    return served(simulated=pipeline, current=remembering)


def moved_through(driver, robot, share):
    """The driver has measured each actuator over that share of its range."""
    keeper = HistoryKeeper(robot)
    for number, part in enumerate((0.0, share, share)):
        keeper.note(part * robot.actuator_max, 10.0 * number)
    driver.note_history(history_message(keeper.history, robot, Time()))


def ended(server, goal, outcome, robot, warn):
    """The result message of a goal, and what was logged."""
    logged, stop = [], StopRequest()
    made = object.__new__(server)
    made.robot = robot
    made.node = SimpleNamespace(
        parameters={"feedback_rate": 1.0},
        get_logger=lambda: SimpleNamespace(warning=logged.append),
        get_clock=lambda: SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time)),
    )
    made._run, made._warn, made._workers, made._stops = lambda *_: outcome, warn, AtOnce(), {b"1": stop}
    made._commander, made._moving, made._client = SimpleNamespace(end=lambda goal: None), None, None
    with pytest.raises(StopIteration) as end:
        handle = SimpleNamespace(goal_id=SimpleNamespace(uuid=b"1"), publish_feedback=lambda feedback: None)
        made._carry_out(goal, handle).send(None)
    return end.value.value[2], logged


@pytest.mark.parametrize(("server", "goal", "outcome"), SERVED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_result_says_that_the_past_is_not_known_until_it_no_longer_matters(
    robot, driver, models, server, goal, outcome
):
    for share, warns in ((None, True), (0.3, True), (0.6, False)):
        if share is not None:
            moved_through(driver, robot, share)
        result, logged = ended(server, goal, outcome, robot, unknown_past(driver, models))
        assert [SAID in line for line in result.solve.warnings] == [True] * warns
        assert len(logged) == warns


def test_a_body_without_memory_and_given_actuator_values_are_not_warned_of(robot, driver, models):
    warn = unknown_past(driver, models)
    assert warn(ReachGoal(SHAPE, Mode.PLAN_ONLY)) and not warn(
        ReachGoal(SHAPE, Mode.PLAN_ONLY, without_sim_to_real=True)
    )
    values = FollowGoal(ActuatorPath(np.zeros((1, 9))))
    result, logged = ended(FollowServer, values, SERVED[1][2], robot, warn)
    assert not result.solve.warnings and not logged


def test_a_stream_says_it_once_in_the_log(driver, remembering):
    logged, streams = [], object.__new__(ServoStreams)
    streams._node = SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=logged.append, info=lambda line: None))
    streams._driver, streams._model, streams._warned = driver, remembering, False
    streams._last_published, streams._publish = ServoReport(), lambda report: None
    for state in (ServoState.TRACKING, ServoState.TRACKING, ServoState.OFF, ServoState.TRACKING):
        streams._on_report(ServoReport(state))
    assert len(logged) == 1 and SAID in logged[0]
