"""Log lines that do nothing to the terminal they are shown in, and do not look like others."""

import os
from typing import Any

from rclpy.impl import rcutils_logger

from softform_core.text import printable

_LONGEST_LINE = 8000

# rclpy tells calls apart, to throttle them, by the first caller whose file is not in this list.
rcutils_logger._internal_callers.append(os.path.realpath(__file__))


class PrintableLogger(rcutils_logger.RcutilsLogger):
    """Logs what is printable: many a message quotes strings that others sent."""

    def log(self, message: object, severity: Any, **options: Any) -> bool:
        """Log a message, as rclpy's loggers do."""
        return bool(super().log(printable(str(message), _LONGEST_LINE, lines=True), severity, **options))
