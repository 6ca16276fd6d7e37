"""A controller in plain rclpy: streams targets to the robot, fifty a second, then measures how close it came.

`./softform python controller.py POINTS.npy` with (N, 3) metres in the robot's frame: the shape breathes for a while.
"""

import sys

import numpy as np
import rclpy
from planner import Planner
from rclpy.action import ActionClient
from sensor_msgs.msg import PointCloud2

from softform_interfaces.action import CaptureShape
from softform_interfaces.msg import ServoState

RATE = 50.0  # Hz
SECONDS = 8.0
BREATHS = 2


class Controller(Planner):
    """Publishes clouds on `target_shape` and hears what the servo makes of them on `servo_state`."""

    def __init__(self, points):
        super().__init__()
        self.points, self.sent, self.state = points, 0, ServoState()
        self.targets = self.create_publisher(PointCloud2, "target_shape", 1)
        self.create_subscription(ServoState, "servo_state", self.note, 10)
        self.capturing = ActionClient(self, CaptureShape, "capture_shape")

    def note(self, state):
        """Keep the newest state; the servo says why it does not follow."""
        if state.reason and state.reason != self.state.reason:
            self.get_logger().warning(state.reason)
        self.state = state

    def step(self):
        """Send the target of this moment."""
        share = 0.9 + 0.1 * np.cos(2.0 * np.pi * BREATHS * self.sent / (RATE * SECONDS))
        self.targets.publish(self.cloud(self.points * [1.0, 1.0, share]))
        self.sent += 1

    def stream(self):
        """Send all targets, each when it is due; the robot holds the last one."""
        while not self.targets.get_subscription_count():
            rclpy.spin_once(self, timeout_sec=0.1)
        timer = self.create_timer(1.0 / RATE, self.step)
        while self.sent < RATE * SECONDS:
            rclpy.spin_once(self)
        self.destroy_timer(timer)
        return self.state

    def measure(self):
        """What a scan of the robot says, once it stands still."""
        self.capturing.wait_for_server()
        handle = self.wait(self.capturing.send_goal_async(CaptureShape.Goal(target=self.cloud(self.points))))
        return self.wait(handle.get_result_async()).result


if __name__ == "__main__":
    rclpy.init()
    controller = Controller(np.load(sys.argv[1]))
    state, log = controller.stream(), controller.get_logger()
    log.info(f"predicted {1e3 * state.mean_error:.2f} mm, {state.commands} commands, {state.targets_rejected} rejected")
    result = controller.measure()
    if result.error_code:
        sys.exit(f"[{result.error_code}] {result.error_msg}")
    log.info(f"measured {1e3 * result.measured.mean_error:.2f} mm")
