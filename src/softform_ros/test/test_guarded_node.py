"""What others send, with real executors in this process: no message, request or goal ends a node, or leaves it dead."""

import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest
from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Time as Stamp
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters, SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.experimental import EventsExecutor
from rclpy.serialization import serialize_message
from rclpy.task import Future
from rclpy.time import Time
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from softform_core.text import LONGEST_MESSAGE
from softform_interfaces.action import CollectDataset
from softform_interfaces.srv import Lease
from softform_ros.action_goals import GoalLedger
from softform_ros.background_node import BackgroundNode
from softform_ros.checked_action import CheckedAction
from softform_ros.diagnostics import WARN
from softform_ros.goal_error import GoalCode, GoalError
from softform_ros.guarded_node import GuardedNode, spin
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.parameters import Parameter
from softform_ros.service_calls import call_service, wait_until_answered

ANSWER_SECONDS = 10.0
EXECUTORS = pytest.mark.parametrize("make_executor", [EventsExecutor, SingleThreadedExecutor], ids=["events", "single"])


class Brittle(SoftformLifecycleNode):
    """Every callback raises at what it does not like."""

    def __init__(self):
        table = [Parameter("count", 1, "any", read_only=False), Parameter("gain", 1.0, "any", 0.0, 2.0)]
        super().__init__("brittle", table)
        self.taken, self.decided, self.ticks, self.goes_on = [], [], 0, threading.Event()
        self.create_subscription(Header, "headers", self.take, 100)
        self.create_service(Trigger, "raises", lambda request, response: 1 / 0)
        self.create_service(Trigger, "unsendable", self.answer_unsendable)
        self.create_service(Trigger, "long", self.answer_long)
        self.create_service(Trigger, "none", lambda request, response: None)
        self.create_service(Trigger, "awaits", self.answer_later)
        self.create_service(Lease, "lease", self.answer_lease)
        self.create_timer(0.05, self.tick)
        self.action = CheckedAction(
            self,
            CollectDataset,
            "collect_dataset",
            GoalLedger(self),
            self.check,
            lambda goal, handle: None,
            self.carry_out,
            lambda handle: 1 / 0,
        )

    def take(self, message):
        if message.frame_id == "wait":
            self.goes_on.wait(ANSWER_SECONDS)
            return
        Time.from_msg(message.stamp)  # raises if that is negative
        self.taken.append(message)

    def answer_unsendable(self, request, response):
        response.message = 3
        return response

    def answer_long(self, request, response):
        response.message = "\x1b[2J\udcff" + "x" * 10**6
        return response

    async def answer_later(self, request, response):
        raise KeyError("later")

    def answer_lease(self, request, response):
        response.lease = 100 // request.client
        response.success = True
        return response

    def tick(self):
        self.ticks += 1
        raise RuntimeError("tick")

    def check(self, message):
        if message.via:
            raise GoalError(GoalCode.INVALID_GOAL, f"nothing captures via {message.via}")
        return message.frames // message.seed

    async def carry_out(self, goal, handle):
        raise ValueError(goal)

    def on_callback_failure(self, error):
        self.decided.append(error)
        if isinstance(error, ZeroDivisionError):
            raise LookupError("not even this ends it")


@contextmanager
def spun(make_node, make_executor, context):
    """Spin a node in a context that another has, too: that takes no discovery, which may fail for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rclpy.node.get_default_context", lambda: context)  # life-cycle nodes take no context
        node = make_node()
    executor, ends = make_executor(context=context), threading.Event()
    executor.add_node(node)
    thread = threading.Thread(target=spin, args=(executor, node, lambda: not ends.is_set()), daemon=True)
    thread.start()
    try:
        yield node
        assert thread.is_alive()
    finally:
        ends.set()
        thread.join(10.0)
        assert not thread.is_alive()
        node.destroy_node()


@pytest.fixture
def peer():
    with BackgroundNode("peer", "") as node:
        yield node


def until(condition, seconds=ANSWER_SECONDS):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


class Asker:
    """Asks one node, whom it knows by then."""

    def __init__(self, node):
        self.node, self.clients = node, {}

    def __call__(self, kind, name, **fields):
        if name not in self.clients:
            self.clients[name] = self.node.create_client(kind, f"/{name}")
            assert self.clients[name].wait_for_service(ANSWER_SECONDS)
            assert wait_until_answered(self.node, "/brittle", ANSWER_SECONDS)
        answer = self.clients[name].call(kind.Request(**fields), timeout_sec=ANSWER_SECONDS)
        assert answer is not None, f"{name} does not answer {fields}"
        return answer


class Caller:
    """Sends goals and takes their results, from the thread that takes the answers, as `ActionCaller` does."""

    def __init__(self, node):
        self.node, self.client = node, ActionClient(node, CollectDataset, "collect_dataset")
        assert self.client.wait_for_server(ANSWER_SECONDS)

    def __call__(self, goal):
        handle = self.awaited(lambda: self.client.send_goal_async(goal))
        return self.awaited(handle.get_result_async).result

    def awaited(self, send):
        asked = self.node.executor.create_task(send)
        assert until(asked.done)
        assert until(asked.result().done)
        return asked.result().result()


@EXECUTORS
def test_what_follows_a_message_that_fails_is_taken_at_once(make_executor, peer):
    with spun(Brittle, make_executor, peer.context) as node:
        publisher = peer.create_publisher(Header, "headers", 100)
        assert until(lambda: publisher.get_subscription_count() and node.count_publishers("headers"))
        publisher.publish(Header(frame_id="wait"))
        for number in range(40):  # after each that failed, the EventsExecutor lagged further behind
            publisher.publish(Header(stamp=Stamp(sec=-1)))
            publisher.publish(Header(frame_id=str(number)))
        time.sleep(0.2)
        node.goes_on.set()
        assert until(lambda: len(node.taken) == 40)
        assert [message.frame_id for message in node.taken] == [str(number) for number in range(40)]
        ticks = node.ticks
        assert until(lambda: node.ticks > ticks + 2)
        assert node.failed_callbacks.count >= 40


@EXECUTORS
def test_every_request_is_answered(make_executor, peer):
    with spun(Brittle, make_executor, peer.context) as node:
        ask = Asker(peer)
        for name in ("raises", "unsendable", "none", "awaits"):
            answer = ask(Trigger, name)
            assert not answer.success, name
            assert "failed at this request" in answer.message, name
        said = ask(Trigger, "long").message
        assert said.isprintable()
        assert len(said) == LONGEST_MESSAGE
        assert not ask(Lease, "lease", client=0).success
        assert ask(Lease, "lease", client=4).lease == 25
        assert ask(GetParameters, "brittle/get_parameters", names=["", "\N{ZERO WIDTH SPACE}"]).values == []
        ask(DescribeParameters, "brittle/describe_parameters", names=["", "no" * 1000])
        assert node.get_parameter("count").value == 1


@EXECUTORS
def test_parameters_of_no_type_are_rejected_beside_good_ones(make_executor, peer):
    with spun(Brittle, make_executor, peer.context) as node:
        ask = Asker(peer)
        good = ParameterMessage(name="count", value=ParameterValue(type=2, integer_value=7))
        bad = ParameterMessage(name="count", value=ParameterValue(type=200))
        nameless = ParameterMessage(value=ParameterValue(type=2, integer_value=7))
        unset = ParameterMessage(name="count", value=ParameterValue(type=0))
        results = ask(SetParameters, "brittle/set_parameters", parameters=[bad, good, nameless, unset]).results
        assert [result.successful for result in results] == [False, True, False, False]
        assert "200" in results[0].reason
        result = ask(SetParametersAtomically, "brittle/set_parameters_atomically", parameters=[good, bad]).result
        assert not result.successful
        assert "200" in result.reason
        assert node.get_parameter("count").value == 7


def test_a_background_node_rejects_such_parameters_and_goes_on(peer):
    with BackgroundNode("brittle", "") as node:
        ask, bad = Asker(peer), ParameterMessage(name="use_sim_time", value=ParameterValue(type=200))
        (result,) = ask(SetParameters, "brittle/set_parameters", parameters=[bad]).results
        assert not result.successful
        node.executor.create_task(lambda: 1 / 0)  # as callbacks of a future are
        assert until(lambda: node.failed_callbacks.count == 1)
        assert ask(GetParameters, "brittle/get_parameters", names=["use_sim_time"]).values


@EXECUTORS
def test_a_transition_that_is_not_possible_now_is_answered(make_executor, peer):
    with spun(Brittle, make_executor, peer.context):
        ask = Asker(peer)

        def change(**transition):
            return ask(ChangeState, "brittle/change_state", transition=Transition(**transition)).success

        for impossible in (3, 4, 10, 99, 200, 255):
            assert not change(id=impossible)
        assert not change(label="no such \x1b[31m")
        assert not change(id=Transition.TRANSITION_CONFIGURE, label="activate")
        assert change(id=Transition.TRANSITION_CONFIGURE)
        assert not change(id=Transition.TRANSITION_CONFIGURE)
        assert change(label="activate")
        assert ask(GetState, "brittle/get_state").current_state.id == State.PRIMARY_STATE_ACTIVE
        assert ask(GetAvailableTransitions, "brittle/get_available_transitions").available_transitions


@EXECUTORS
def test_a_goal_that_fails_in_any_way_ends(make_executor, peer):
    with spun(Brittle, make_executor, peer.context) as node:
        call = Caller(peer)
        node.is_active = True
        internal = CollectDataset.Result.INTERNAL_ERROR
        assert call(CollectDataset.Goal(seed=0)).error_code == internal
        assert call(CollectDataset.Goal(seed=1)).error_code == internal
        said = call(CollectDataset.Goal(seed=1, via="\x1b[2J" * 1000)).error_msg
        assert said.isprintable()
        assert len(said) == LONGEST_MESSAGE
        node.diagnostics.publish = lambda: 1 / 0  # what concludes a goal fails, too
        assert not call(CollectDataset.Goal(seed=1)).error_msg
        ask = Asker(peer)
        for stamp in (Stamp(), Stamp(sec=-5), Stamp(sec=2**31 - 1, nanosec=2**32 - 1)):
            ask(CancelGoal, "collect_dataset/_action/cancel_goal", goal_info=GoalInfo(stamp=stamp))
        ask(CollectDataset.Impl.GetResultService, "collect_dataset/_action/get_result")


@EXECUTORS
def test_goals_that_have_ended_are_forgotten(make_executor, peer, monkeypatch):
    monkeypatch.setattr("softform_ros.checked_action._RESULT_SECONDS", 1)
    with spun(Brittle, make_executor, peer.context) as node:
        call = Caller(peer)
        for _ in range(5):
            call(CollectDataset.Goal())
        assert len(node.action._server._goal_handles) == 5
        assert until(lambda: not node.action._server._goal_handles)
        assert call(CollectDataset.Goal()).error_msg


@EXECUTORS
def test_failures_are_told_in_diagnostics(make_executor, peer):
    heard = []
    peer.create_subscription(DiagnosticArray, "/diagnostics", lambda message: heard.extend(message.status), 10)
    with spun(Brittle, make_executor, peer.context):
        assert until(lambda: any(status.level == WARN and "tick" in status.message for status in heard))
        values = {pair.key: pair.value for pair in heard[-1].values}
    assert int(values["failed callbacks"]) > 0
    assert values["last failed callback"] == "RuntimeError: tick"


@EXECUTORS
def test_bytes_that_are_no_message_are_passed_over(make_executor, peer):
    with spun(Brittle, make_executor, peer.context) as node:
        publisher = peer.create_publisher(Header, "headers", 100)
        assert until(lambda: publisher.get_subscription_count() and node.count_publishers("headers"))
        whole = serialize_message(Header(frame_id="x" * 20))
        for data in (
            b"",
            whole[:3],
            whole[:9],
            whole[:-3],
            whole[:12] + b"\xff\xff\xff\x7f",
            b"\0\x09\0\0" + whole[4:],
        ):
            publisher.publish(data)
        publisher.publish(whole.replace(b"x", b"\xff"))
        publisher.publish(Header(frame_id="last"))
        assert until(lambda: node.taken and node.taken[-1].frame_id == "last")
        assert all(isinstance(message, Header) for message in node.taken)


def test_a_guard_condition_that_fails_ends_no_thread(peer):
    with spun(partial(GuardedNode, "brittle", context=peer.context), SingleThreadedExecutor, peer.context) as node:
        news = node.create_guard_condition(lambda: 1 / 0)
        for count in (1, 2):
            news.trigger()
            assert until(lambda count=count: node.failed_callbacks.count == count)


def test_an_executor_that_does_nothing_but_fail_is_given_up(monkeypatch):
    monkeypatch.setattr("softform_ros.guarded_node._PATIENCE_SECONDS", 0.2)
    with BackgroundNode("brittle", "") as node:
        executor = SingleThreadedExecutor(context=node.context)
        executor.spin_once = lambda timeout_sec: 1 / 0
        with pytest.raises(ZeroDivisionError):
            spin(executor, node, lambda: True)
        assert node.failed_callbacks.count > 1


def test_what_fails_at_one_place_is_logged_once(capfd, peer):
    with spun(partial(GuardedNode, "quiet", context=peer.context), SingleThreadedExecutor, peer.context) as node:

        def fail(what):
            raise ValueError(what)

        for number in range(20):
            node._guarded(fail)(f"{number} \x1b[2J\u202e\n[INFO] [other]: forged")
        node.get_logger().warning("and \x1b[31mred\nforged", throttle_duration_sec=1.0)
    said = capfd.readouterr().err
    assert said.count("Traceback") == 1
    assert node.failed_callbacks.count == 20
    assert not {"\x1b", "\u202e"} & set(said)
    assert not [line for line in said.splitlines() if line.startswith(("[INFO]", "forged"))]


def test_a_future_whose_callback_raises_ends_no_thread(peer):
    future = Future(executor=peer.executor)
    future.add_done_callback(lambda done: 1 / 0)
    future.set_result(None)
    peer.executor.wake()
    assert until(lambda: peer.failed_callbacks.count == 1)
    assert call_service(peer, "/peer", GetParameters, "/peer/get_parameters", GetParameters.Request(), 10.0)
