"""A driver of mocap4r2 as a process of its own: publishes the scene's markers until it is killed."""

import sys
import time

import rclpy
from captured_scene import NAMES, seen
from geometry_msgs.msg import Point
from mocap4r2_msgs.msg import Marker, Markers

from softform_ros import qos
from softform_ros.conversions import stamp_from_seconds

LATENCY = 0.05


def main() -> None:
    """Argument: the name of a marker that is occluded."""
    hidden = sys.argv[1]
    rclpy.init()
    node = rclpy.create_node("driver", namespace="/softform")
    publisher = node.create_publisher(Markers, "markers", qos.CAPTURED_MARKERS)
    number = 0
    while True:
        message = Markers(frame_number=number)
        message.header.stamp = stamp_from_seconds(time.time() - LATENCY)
        for index, (name, (x, y, z)) in enumerate(zip(NAMES, seen(number), strict=True)):
            marker = Marker(id_type=Marker.USE_BOTH, marker_index=index, marker_name=name)
            marker.translation = Point() if name == hidden else Point(x=x, y=y, z=z)
            message.markers.append(marker)
        publisher.publish(message)
        number += 1
        time.sleep(0.02)


main()
