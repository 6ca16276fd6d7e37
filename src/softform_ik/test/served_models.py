"""Models as servers have them, for tests."""

from types import SimpleNamespace


def served(**models):
    """Return models of which there is one kind."""
    one = SimpleNamespace(**models)
    one.of = lambda kind: one
    return one
