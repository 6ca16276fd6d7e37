"""A driver's lease without a driver."""


class GrantedLease:
    """The lease of a driver that gives it, until the test says otherwise."""

    def __init__(self):
        self.is_held, self.asked, self.rejection = False, 0, None

    def acquire(self):
        if not self.is_held:
            self.asked += 1
            if self.rejection is not None:
                raise self.rejection
            self.is_held = True

    def release(self):
        held, self.is_held = self.is_held, False
        return held
