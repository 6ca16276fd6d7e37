"""Nodes that no message, request or goal of others ends: what a callback raises is logged and counted, and they go on.

An exception in a callback must never reach an executor of rclpy 7.1: it leaves `spin_once`, a request is then never
answered, and what the `EventsExecutor` had announced of the same topic stays in its queue: from then on each message
is handed out when the next ones come.
"""

import inspect
import threading
import time
import traceback
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import Executor, ExternalShutdownException, ShutdownException
from rclpy.guard_condition import GuardCondition
from rclpy.node import Node
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from rclpy.waitable import Waitable

from softform_core.errors import reason_of
from softform_core.text import LONGEST_MESSAGE, printable
from softform_ros.printable_logger import PrintableLogger

_LOG_SECONDS = 5.0
"""Least time between two log entries on failures at the same place of the code, s."""

_BREATH_SECONDS, _PATIENCE_SECONDS = 0.01, 5.0


class FailedCallbacks:
    """Exceptions that callbacks of a node raised.

    Attributes:
        count: Number of exceptions.
        last: The last error.
        last_at: Steady time of the last one, s.
    """

    def __init__(self, logger: PrintableLogger) -> None:
        self.count, self.last, self.last_at = 0, "", float("-inf")
        self._logger, self._lock = logger, threading.Lock()
        # By place of the code, of which there are only so many.
        self._logged_at: dict[tuple[str, int | None], float] = {}

    def note(self, error: Exception) -> None:
        """Count an error, and log it unless it was just now."""
        frames = traceback.extract_tb(error.__traceback__)
        place, now = (frames[-1].filename, frames[-1].lineno) if frames else ("", 0), time.monotonic()
        with self._lock:
            self.count, self.last, self.last_at = self.count + 1, printable(reason_of(error)), now
            is_news = now - self._logged_at.get(place, float("-inf")) > _LOG_SECONDS
            if is_news:
                self._logged_at[place] = now
        if is_news:
            said = "".join(traceback.format_exception(error))
            self._logger.error(f"a callback failed ({self.count} so far), the node goes on: {said}")


class GuardedNode(Node):
    """A node whose callbacks may raise, and whose services answer then, too."""

    @cached_property
    def failed_callbacks(self) -> FailedCallbacks:
        """Exceptions that callbacks have raised so far."""
        return FailedCallbacks(self.get_logger())

    @cached_property
    def _printable_logger(self) -> PrintableLogger:
        return PrintableLogger(super().get_logger().name)

    def get_logger(self) -> PrintableLogger:
        """Return the node's logger."""
        return self._printable_logger

    def on_callback_failure(self, error: Exception) -> None:
        """Handle a failed callback further, when it is logged and counted; called in the executor's thread."""

    def note_failed_callback(self, error: Exception) -> None:
        """Log and count what a callback raised; raises nothing."""
        self.failed_callbacks.note(error)
        try:
            self.on_callback_failure(error)
        except Exception as another:
            self.failed_callbacks.note(another)

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[..., Any], *args: Any, **options: Any
    ) -> Subscription:
        """Subscribe, as rclpy's nodes do."""
        return super().create_subscription(msg_type, topic, self._guarded(callback), *args, **options)

    def create_timer(self, timer_period_sec: float, callback: Callable[[], Any], *args: Any, **options: Any) -> Timer:
        """Make a timer, as rclpy's nodes do."""
        return super().create_timer(timer_period_sec, self._guarded(callback), *args, **options)

    def create_guard_condition(self, callback: Callable[[], Any], *args: Any, **options: Any) -> GuardCondition:
        """Make a guard condition, as rclpy's nodes do."""
        return super().create_guard_condition(self._guarded(callback), *args, **options)

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Callable[[Any, Any], Any], *args: Any, **options: Any
    ) -> Service:
        """Serve, as rclpy's nodes do."""
        if srv_type is SetParameters:
            callback = self._each_on_its_own(callback)
        service = super().create_service(srv_type, srv_name, callback, *args, **options)
        self.guard_service(service)
        return service

    def add_waitable(self, waitable: Waitable) -> None:
        """Add an action, its client or an event to be waited for, as rclpy's nodes do."""
        waitable.execute = self._guarded(waitable.execute)  # type: ignore[method-assign]
        super().add_waitable(waitable)

    def guard_service(self, service: Service) -> None:
        """Make a service answer whatever its callback raises: `success` false and a `message`, where it has them."""
        kind, send = service.srv_type, service.send_response

        def send_some(response: Any, header: Any) -> None:
            try:
                if said := getattr(response, "message", ""):  # it may quote what was sent
                    response.message = printable(said, LONGEST_MESSAGE, lines=True)
                send(response, header)
            except RCLError as error:  # who asked has gone
                self.get_logger().warning(f"'{service.srv_name}' could not answer: {error}")
            except Exception as error:  # the answer cannot be sent as it is
                self.note_failed_callback(error)
                send(_failure_answer(kind, error), header)

        service.callback = self._guarded(service.callback, lambda error: _failure_answer(kind, error))
        service.send_response = send_some  # type: ignore[method-assign]

    def _guarded(
        self, callback: Callable[..., Any], instead: Callable[[Exception], Any] = lambda error: None
    ) -> Callable[..., Any]:
        """Return a callback that never raises; it returns `instead` of what raised."""
        if inspect.iscoroutinefunction(callback):

            @wraps(callback)
            async def awaited(*args: Any) -> Any:
                try:
                    return await callback(*args)
                except Exception as error:
                    self.note_failed_callback(error)
                    return instead(error)

            return awaited

        @wraps(callback)
        def called(*args: Any) -> Any:
            try:
                return callback(*args)
            except Exception as error:
                self.note_failed_callback(error)
                return instead(error)

        return called

    def _each_on_its_own(self, callback: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Set parameters one by one: rclpy raises at a type that is none, and answers nothing about the others.

        It also takes a parameter without a name for one that was declared.
        """

        def set_each(request: SetParameters.Request, response: SetParameters.Response) -> SetParameters.Response:
            for one in request.parameters:
                try:
                    if not one.name:
                        raise ValueError("The parameter has no name")
                    answer = callback(SetParameters.Request(parameters=[one]), SetParameters.Response())
                    response.results.extend(answer.results)
                except Exception as error:
                    self.get_logger().warning(f"parameter '{one.name}' rejected: {error}", throttle_duration_sec=1.0)
                    response.results.append(SetParametersResult(successful=False, reason=printable(str(error))))
            return response

        return set_each


def _failure_answer(kind: Any, error: Exception) -> Any:
    """Return the answer to give if nothing better can be given."""
    reason = f"The node failed at this request: {printable(reason_of(error))}. See its log."
    if kind is SetParametersAtomically:
        return kind.Response(result=SetParametersResult(successful=False, reason=reason))
    fields = kind.Response.get_fields_and_field_types()
    return kind.Response(message=reason) if {"success", "message"} <= fields.keys() else kind.Response()


def spin(executor: Executor, node: GuardedNode, goes_on: Callable[[], bool], seconds: float | None = 0.1) -> None:
    """Execute the callbacks of a node until that is over, or its context is; what is raised nevertheless is noted.

    Args:
        executor: Has the node.
        node: Notes it.
        goes_on: Asked after each callback, and whenever there was none for `seconds`.
        seconds: s; None: the executor is woken at the end.

    Raises:
        Exception: What the executor raises, if for seconds it did nothing else: then no callback is executed any more.
    """
    failing_since: float | None = None
    while goes_on() and node.context.ok():
        try:
            executor.spin_once(timeout_sec=seconds)
            failing_since = None
        except (ShutdownException, ExternalShutdownException):
            return
        except Exception as error:
            if not node.context.ok():  # that is found in the middle of a step
                return
            node.note_failed_callback(error)
            failing_since = failing_since or time.monotonic()
            if time.monotonic() - failing_since > _PATIENCE_SECONDS:
                raise
            time.sleep(_BREATH_SECONDS)  # whatever it is, it may come at once again
