"""Topic `predicted_contact`: where the model touches what, and how hard, for viewers."""

import time

from builtin_interfaces.msg import Time
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from softform_core.arrays import Array
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.robots import Robot
from softform_ros import qos
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.viewer_markers import touch_markers

_LEAST_SECONDS = 0.2


class ContactMarkers:
    """Publishes points and forces of contact at most 5 times a second, as long as somebody looks.

    Args:
        node: The node.
        robot: A robot whose body has contact.
        model: Its simulation: networks know no forces.
    """

    def __init__(self, node: SoftformLifecycleNode, robot: Robot, model: SimulatedSurface) -> None:
        self._robot, self._model, self._sent_at = robot, model, -float("inf")
        self.publisher = node.create_publisher(MarkerArray, "predicted_contact", qos.PREDICTED_SURFACE)

    def publish(self, actuation: Array, stamp: Time) -> None:
        """Publish the contact at an actuation (m,).

        Raises:
            NoEquilibriumError: If there is no equilibrium.
        """
        now = time.monotonic()
        if not self.publisher.get_subscription_count() or now - self._sent_at < _LEAST_SECONDS:
            return
        self._sent_at = now
        header = Header(frame_id=self._robot.base_frame, stamp=stamp)
        self.publisher.publish(touch_markers(self._model.touches(actuation), self._robot.body.size, header))
