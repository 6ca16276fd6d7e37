"""A planner in plain rclpy: a cloud in, the robot's answer out.

`python planner.py POINTS.npy [FRAME]` with (N, 3) metres in FRAME: the robot's, or any that TF knows, as a camera's.
"""

import sys

import numpy as np
import rclpy
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.wait_for_message import wait_for_message
from sensor_msgs.msg import PointCloud2, PointField

from softform_interfaces.action import ReachShape
from softform_interfaces.msg import Asked, DriverState

FRAME = "membrane/base_link"


class Planner(Node):
    """Sends clouds to the action `reach_shape` and waits for what becomes of them."""

    def __init__(self):
        super().__init__("planner", namespace="softform")
        self.reaching = ActionClient(self, ReachShape, "reach_shape")

    def wait(self, future):
        """What a future comes to; the node works meanwhile."""
        rclpy.spin_until_future_complete(self, future)
        return future.result()

    def cloud(self, points, frame=FRAME):
        """Points (N, 3) m as a message."""
        data = np.ascontiguousarray(points, np.float32)
        fields = [PointField(name=n, offset=4 * i, datatype=PointField.FLOAT32, count=1) for i, n in enumerate("xyz")]
        cloud = PointCloud2(height=1, width=len(data), fields=fields, point_step=12, row_step=12 * len(data))
        cloud.data, cloud.is_dense = data.tobytes(), True
        cloud.header.frame_id, cloud.header.stamp = frame, self.get_clock().now().to_msg()
        return cloud

    def reach(self, cloud, mode=ReachShape.Goal.PLAN_AND_MOVE, **options):
        """Bring the robot to a shape; the result says what came of it, or why it was rejected."""
        goal = ReachShape.Goal(target=cloud, mode=mode, fix_pose=True)
        for name, value in options.items():
            setattr(goal.options, name, value)
        self.reaching.wait_for_server()
        _, driver = wait_for_message(DriverState, self, "driver_state")  # it comes five times a second
        now, name = self.get_clock().now().to_msg(), self.get_fully_qualified_name()
        goal.asked = Asked(stamp=now, epoch=driver.epoch, client=name)
        return self.wait(self.wait(self.reaching.send_goal_async(goal)).get_result_async()).result


if __name__ == "__main__":
    rclpy.init()
    planner = Planner()
    result = planner.reach(planner.cloud(np.load(sys.argv[1]), *sys.argv[2:]))
    if result.error_code:
        sys.exit(f"[{result.error_code}] {result.error_msg}")
    planner.get_logger().info(f"{1e3 * result.solve.mean_error:.2f} mm off the target, with {result.actuators}")
