"""A controller as a process of its own: streams the points of a file, until it is killed."""

import itertools
import sys
import time

import numpy as np
import rclpy
from sensor_msgs.msg import PointCloud2

from softform_client.client import ShapeClient
from softform_core.shapes.shape import Shape
from softform_ros import qos
from softform_ros.conversions import cloud_from_points


def main() -> None:
    """Arguments: namespace, a .npy file of (N, 3) m, and for a program of the client how many targets it streams."""
    namespace, file, *count = sys.argv[1:]
    points = np.load(file)
    if count:
        with ShapeClient(namespace) as client:
            for _ in client.stream(itertools.repeat(Shape.from_cloud(points), int(count[0]))):
                pass
        return
    rclpy.init()
    node = rclpy.create_node("controller", namespace=namespace)
    publisher = node.create_publisher(PointCloud2, "target_shape", qos.TARGET_SHAPE)
    while True:
        publisher.publish(cloud_from_points(points, "membrane/base_link", node.get_clock().now().to_msg()))
        time.sleep(0.02)


if __name__ == "__main__":
    main()
