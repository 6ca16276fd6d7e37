"""Softform without ROS: robots, simulation, surfaces, networks, kinematics and their command line."""
