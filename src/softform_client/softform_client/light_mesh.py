"""Meshes that go over the wire as triangles, and those that are sent as points instead."""

from softform_core.shapes.target import TargetShape

MOST_TRIANGLES = 20_000
"""Triangles of a message are unpacked one by one, by the thread that also repeats what the robot holds: a hundred
thousand take most of the second after which the driver vents."""

SAMPLED_POINTS = 20_000


def as_light(shape: TargetShape) -> TargetShape:
    """The shape itself, or of a mesh of more than `MOST_TRIANGLES` a cloud of `SAMPLED_POINTS`, even by area."""
    if shape.faces is None or len(shape.faces) <= MOST_TRIANGLES:
        return shape
    return shape.sample(SAMPLED_POINTS)
