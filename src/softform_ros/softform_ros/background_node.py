"""A ROS node inside a program that is none: a context of its own, spun by a thread."""

import threading

import rclpy
from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from softform_core.errors import SoftformError
from softform_ros.guarded_node import GuardedNode, spin

_PATIENCE_SECONDS = 2.0  # for the callback that runs when the node shall stop


def full_namespace(namespace: str) -> str:
    """Return `softform` or `/softform/` as `/softform`."""
    return "/" + namespace.strip("/")


class BackgroundNode:
    """Node that exists from `open` to `close`, or in a `with` block; the program keeps its signal handlers."""

    def __init__(self, name: str, namespace: str) -> None:
        self._name, self._namespace = name, full_namespace(namespace)
        self._context: rclpy.Context | None = None
        self._is_stopping = False

    @property
    def is_open(self) -> bool:
        """Whether the node exists."""
        return self._context is not None and self._context.ok()

    @property
    def thread(self) -> threading.Thread:
        """Thread that spins the node."""
        return self._thread

    def open(self) -> None:
        """Make the node and spin it.

        Raises:
            SoftformError: If ROS takes no such namespace.
        """
        context = rclpy.Context()
        rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
        try:
            self.node = GuardedNode(self._name, namespace=self._namespace, context=context, use_global_arguments=False)
        except InvalidNamespaceException as error:
            rclpy.shutdown(context=context)
            raise SoftformError(
                f"'{self._namespace}' is no namespace.", "Use letters, digits and _, such as 'softform' or 'lab/left'."
            ) from error
        self._context, self._is_stopping = context, False
        self.executor = SingleThreadedExecutor(context=self._context)
        self.executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Spin no more; what hangs on the node can then be destroyed from any thread."""
        if self._context is not None and self._context.ok():
            self._is_stopping = True
            self.executor.create_task(lambda: None)  # wakes it
            self._thread.join(_PATIENCE_SECONDS)  # without its context a callback would fail in the middle
            rclpy.try_shutdown(context=self._context)
            self._thread.join()

    def close(self) -> None:
        """End the node; harmless if there is none."""
        self.stop()
        if self._context is not None:
            self.node.destroy_node()
            self._context = None

    def __enter__(self) -> Node:
        """Open; returns the node."""
        self.open()
        return self.node

    def __exit__(self, *error: object) -> None:
        self.close()

    def _spin(self) -> None:
        try:
            spin(self.executor, self.node, lambda: not self._is_stopping, None)
        finally:
            rclpy.try_shutdown(context=self._context)  # a node that nobody spins is not open
