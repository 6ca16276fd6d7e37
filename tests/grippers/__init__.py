"""Grippers held by arms, from outside the workspace: a family of devices, its emulation, and a body that it moves.

A pose of a gripper is six channels relative to where it grasped: x, y, z (m) and a rotation vector (rad).
"""
