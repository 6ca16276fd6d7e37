"""Robots as descriptions: a body, actuators, an actuation map, devices, surfaces and frames; the kinds of bodies."""

from softform_core.robots.load import load_robot, read_robot
from softform_core.robots.robot import TIP, TIP_MARKER, Robot

__all__ = ["TIP", "TIP_MARKER", "Robot", "load_robot", "read_robot"]
