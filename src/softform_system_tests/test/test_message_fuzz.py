"""Messages and requests of any kind: at what unpacks them, and at a node with real executors that goes on answering."""

import random
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.experimental import EventsExecutor
from rclpy.serialization import serialize_message
from std_srvs.srv import Trigger

from softform_interfaces import action, msg, srv
from softform_ros.background_node import BackgroundNode
from softform_ros.guarded_node import spin
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.service_calls import call_service
from softform_system_tests.fuzz_targets.messages import MESSAGES, REQUESTS, SEEDS, damaged, fuzz_messages, fuzz_requests
from softform_system_tests.fuzzing.worker import mutated

HOSTILE = 300


@pytest.mark.parametrize("target", [fuzz_messages, fuzz_requests])
def test_what_others_send_is_rejected_or_taken_as_what_it_is(target: Callable[[bytes], None]) -> None:
    seeds, choose = SEEDS[target.__name__], random.Random(11)
    for seed in seeds:
        target(seed)
    for _ in range(2500):
        target(mutated(seeds, choose))


def test_what_is_damaged_is_right_before() -> None:
    never_right = (msg.ActuatorCommand, msg.DriverState, srv.Lease.Request, srv.Reset.Request)  # no driver is there
    for seed, take in (*MESSAGES, *REQUESTS):
        if not isinstance(seed, never_right):
            take(seed)


class Target(SoftformLifecycleNode):
    """Takes all that is fuzzed without a word of its own about what is wrong."""

    def __init__(self, context: rclpy.Context) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rclpy.node.get_default_context", lambda: context)  # life-cycle nodes take no context
            super().__init__("target", [])
        self.taken = 0
        for number, (seed, take) in enumerate(MESSAGES):
            self.create_subscription(type(seed), f"message_{number}", self.counted(take), 1000)
        self.create_service(srv.PredictShape, "predict_shape", self.served(REQUESTS[0][1]))
        self.create_service(srv.Lease, "lease", self.served(REQUESTS[1][1]))
        self.create_service(Trigger, "alive", lambda request, response: Trigger.Response(success=True))

    def counted(self, take: Callable[[object], object]) -> Callable[[object], None]:
        def callback(message: object) -> None:
            self.taken += 1
            take(message)

        return callback

    def served(self, take: Callable[[object], object]) -> Callable[[object, object], object]:
        def callback(request: object, response: object) -> object:
            take(request)
            return response

        return callback


@pytest.mark.parametrize("make_executor", [EventsExecutor, SingleThreadedExecutor])
def test_a_node_goes_on_answering(make_executor: Callable[..., Executor]) -> None:
    choose, ends = random.Random(3), threading.Event()
    with BackgroundNode("hostile", "") as peer:
        node, executor = Target(peer.context), make_executor(context=peer.context)
        executor.add_node(node)
        thread = threading.Thread(target=spin, args=(executor, node, lambda: not ends.is_set()), daemon=True)
        thread.start()
        try:
            publishers = [
                peer.create_publisher(type(seed), f"message_{number}", 1000)
                for number, (seed, _) in enumerate(MESSAGES)
            ]
            alive = partial(call_service, peer, "target", Trigger, "alive", Trigger.Request(), 20.0)
            assert alive().success
            deadline = time.monotonic() + 20.0
            while time.monotonic() < deadline and not all(each.get_subscription_count() for each in publishers):
                time.sleep(0.02)
            clients = {}
            for number, (kind, name) in enumerate(((srv.PredictShape, "predict_shape"), (srv.Lease, "lease"))):
                clients[number] = peer.create_client(kind, name)
                assert clients[number].wait_for_service(20.0)
            for _ in range(HOSTILE):
                number = choose.randrange(len(publishers))
                message = damaged(MESSAGES[number][0], choose)
                if choose.random() < 0.5:
                    publishers[number].publish(message)
                else:
                    publishers[number].publish(mutated([serialize_message(message)], choose))
                if choose.random() < 0.2:
                    number = choose.randrange(len(clients))
                    request = damaged(REQUESTS[number][0], choose)
                    assert clients[number].call(request, timeout_sec=20.0) is not None, request
            assert alive().success
            assert node.taken > HOSTILE // 3
            assert node.failed_callbacks.count > HOSTILE // 10
            assert thread.is_alive()
        finally:
            ends.set()
            thread.join(10.0)
            node.destroy_node()


def test_every_service_and_action_of_the_stack_that_moves_or_predicts_is_fuzzed() -> None:
    kinds = {type(seed) for seed, _ in REQUESTS}
    goals = (action.ReachShape, action.FollowWaypoints, action.PlanToShape, action.CaptureShape)
    assert {kind.Goal for kind in goals} | {srv.Lease.Request, srv.Reset.Request, srv.PredictShape.Request} <= kinds
