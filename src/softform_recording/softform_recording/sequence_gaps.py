"""Counts messages of a topic that were published and never arrived, by the numbers that the middleware gives them."""

from collections.abc import Callable


class SequenceGaps:
    """Follows the numbers of a topic's publishers, of which each counts its own messages from 1.

    A message does not say whose it is, so a number belongs to the publisher whose last one it follows. With one
    publisher the count is exact; with several it is if little is lost.
    """

    def __init__(self) -> None:
        self._last: list[int] = []  # of each publisher, the one that was silent longest first
        self.lost = 0

    def note(self, number: int, count_publishers: Callable[[], int]) -> int:
        """Take the number of a message that arrived.

        Args:
            number: Publication sequence number.
            count_publishers: Tells how many publishers the topic has now.

        Returns:
            How many messages are found missing by it.
        """
        if number - 1 in self._last:
            self._follow(number - 1, number)
            return 0
        publishers = max(count_publishers(), 1)
        earlier = [last for last in self._last if last < number]
        if not earlier or len(self._last) < publishers:  # a publisher that was not heard before, or begins anew
            self._last = [*self._last, number][-publishers:]
            return 0
        nearest = max(earlier)
        self._follow(nearest, number)
        missing = number - nearest - 1
        self.lost += missing
        return missing

    def _follow(self, last: int, number: int) -> None:
        self._last.remove(last)
        self._last.append(number)
