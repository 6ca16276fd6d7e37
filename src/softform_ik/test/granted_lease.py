"""A driver's lease without a driver."""

from softform_core.errors import SoftformError


class GrantedLease:
    """The lease of a driver that gives it, until the test says otherwise."""

    def __init__(self):
        self.is_held, self.asked, self.rejection = False, 0, None
        self.epoch = 1

    def acquire(self, epoch):
        if self.is_held:
            return
        self.asked += 1
        if self.rejection is not None:
            raise self.rejection
        if epoch != self.epoch:
            raise SoftformError("The driver was stopped.")
        self.is_held = True

    def release(self):
        held, self.is_held = self.is_held, False
        return held
