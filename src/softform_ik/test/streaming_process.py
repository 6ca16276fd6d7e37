"""A controller as a process of its own: streams the points of a file, until it is killed."""

import sys
import time

import numpy as np
import rclpy
from sensor_msgs.msg import PointCloud2

from softform_ros import qos
from softform_ros.conversions import cloud_from_points


def main() -> None:
    """Arguments: namespace, and a .npy file of (N, 3) m."""
    namespace, file = sys.argv[1:]
    points = np.load(file)
    rclpy.init()
    node = rclpy.create_node("controller", namespace=namespace)
    publisher = node.create_publisher(PointCloud2, "target_shape", qos.TARGET_SHAPE)
    while True:
        publisher.publish(cloud_from_points(points, "membrane/base_link", node.get_clock().now().to_msg()))
        time.sleep(0.02)


if __name__ == "__main__":
    main()
