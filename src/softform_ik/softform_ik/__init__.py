"""Inverse kinematics: action server and client."""
