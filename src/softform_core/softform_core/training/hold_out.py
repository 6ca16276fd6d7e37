"""Which captured frames judge a sim-to-real model and are never trained on: decided by their numbers alone."""

from collections.abc import Collection

from softform_core.errors import SoftformError

EVERY = 8
"""One frame in so many is held out."""
LEAST = 3
"""Fewer frames than this judge nothing, but of fewer than `EVERY` one does: the others are needed to learn from."""

_TURNS = (7, 3, 5, 1, 6, 2, 4, 0)
"""Remainders of a frame's number by `EVERY` that are held out; later ones only if there are too few frames."""


def hold_out(
    numbers: Collection[int], used: Collection[int] = (), held_out: Collection[int] = ()
) -> tuple[list[int], list[int]]:
    """Part frames into those to train on and those to judge by; returns their numbers, rising.

    What an earlier model was trained on stays so, and what it was judged by stays so: a model that goes on from it
    must not be judged by what it knows.

    Args:
        numbers: Numbers of the usable frames.
        used: An earlier model was trained on these.
        held_out: And judged by these.

    Raises:
        SoftformError: If too few frames can be held out.
    """
    free = sorted(set(numbers) - set(used) - set(held_out))
    judged = set(numbers) & set(held_out)
    least = LEAST if len(set(numbers)) >= EVERY else 1
    for turn in _TURNS:
        if turn == _TURNS[0] or len(judged) < least:
            judged |= {number for number in free if number % EVERY == turn}
    if len(judged) < least:
        raise SoftformError(
            f"Of {len(set(numbers))} frames only {len(judged)} can be held out to judge the model, {least} are needed.",
            "Collect more frames into the same store: softform collect --frames N",
        )
    return sorted(set(numbers) - judged), sorted(judged)
