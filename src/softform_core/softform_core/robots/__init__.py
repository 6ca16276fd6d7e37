"""Robots as descriptions: a body, actuators, an actuation map, devices, surfaces and frames; the kinds of bodies."""

from softform_core.robots.load import load_robot, read_robot
from softform_core.robots.outputs import BONES, CENTRE_LINE, ELEMENTS, TIP, TIP_MARKER
from softform_core.robots.robot import Robot

__all__ = ["BONES", "CENTRE_LINE", "ELEMENTS", "TIP", "TIP_MARKER", "Robot", "load_robot", "read_robot"]
