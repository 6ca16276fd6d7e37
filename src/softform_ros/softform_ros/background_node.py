"""A ROS node inside a program that is none: a context of its own, spun by a thread."""

import threading

import rclpy
from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from softform_core.errors import SoftformError
from softform_ros.guarded_node import GuardedNode, spin


def full_namespace(namespace: str) -> str:
    """`softform` or `/softform/` as `/softform`."""
    return "/" + namespace.strip("/")


class BackgroundNode:
    """Is there from `open` to `close`, or while the `with` block lasts; the program keeps its signal handlers."""

    def __init__(self, name: str, namespace: str) -> None:
        self._name, self._namespace = name, full_namespace(namespace)
        self._context: rclpy.Context | None = None

    @property
    def is_open(self) -> bool:
        """Whether the node is there."""
        return self._context is not None and self._context.ok()

    @property
    def thread(self) -> threading.Thread:
        """What spins the node."""
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
        self._context = context
        self.executor = SingleThreadedExecutor(context=self._context)
        self.executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Spin no more; what hangs on the node can then be destroyed from any thread."""
        if self._context is not None and self._context.ok():
            rclpy.shutdown(context=self._context)
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
            spin(self.executor, self.node, lambda: True, None)
        finally:
            rclpy.try_shutdown(context=self._context)  # a node that nobody spins is not open
