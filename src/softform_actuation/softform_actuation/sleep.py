"""Makes safe before the computer sleeps: while it does, neither driver nor guardian runs, and a board holds its air."""

import logging
import threading
from collections import deque
from collections.abc import Callable

from jeepney import DBusAddress, DBusErrorResponse, MatchRule, Message, message_bus, new_method_call
from jeepney.fds import FileDescriptor
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg

_log = logging.getLogger(__name__)

_LOGIND = DBusAddress("/org/freedesktop/login1", "org.freedesktop.login1", "org.freedesktop.login1.Manager")
_PREPARE_FOR_SLEEP = MatchRule(
    type="signal", interface=_LOGIND.interface, member="PrepareForSleep", path=_LOGIND.object_path
)
_CALL_SECONDS = 2.0
_TICK_SECONDS = 0.5
_UNREACHABLE = (OSError, ValueError, RuntimeError, DBusErrorResponse)


class SleepWatch:
    """Holds the system's sleep back until `on_sleep` has returned, as far as systemd-logind lets it.

    Suspend, hibernation and a closed lid are held back for up to `InhibitDelayMaxSec` of logind.conf (5 s unless
    changed); a computer that loses its power is not. Where there is no logind, as in a container, this says so once.
    """

    def __init__(self, on_sleep: Callable[[], None]) -> None:
        """Begin to watch; `on_sleep` is called in a thread, and should return once all is safe."""
        self._on_sleep = on_sleep
        self._ends = threading.Event()
        self._delay: FileDescriptor | None = None
        self._thread: threading.Thread | None = None
        self._signals: deque[Message] = deque()
        try:
            self._bus = open_dbus_connection("SYSTEM", enable_fds=True)
            self._call(message_bus.AddMatch(_PREPARE_FOR_SLEEP))
            self._bus.filter(_PREPARE_FOR_SLEEP, queue=self._signals)
            self._hold_back()
        except _UNREACHABLE as error:
            _log.info("nobody tells when this computer goes to sleep (no systemd-logind: %s)", error)
            return
        self._thread = threading.Thread(target=self._watch, name="sleep watch", daemon=True)
        self._thread.start()

    @property
    def is_watching(self) -> bool:
        """Whether the computer does not sleep before `on_sleep` was called."""
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        """Let the computer sleep when it likes."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()

    def _call(self, message: Message) -> tuple[object, ...]:
        reply: tuple[object, ...] = unwrap_msg(self._bus.send_and_get_reply(message, timeout=_CALL_SECONDS))
        return reply

    def _hold_back(self) -> None:
        words = ("sleep", "Softform", "The robot is made safe first.", "delay")
        (delay,) = self._call(new_method_call(_LOGIND, "Inhibit", "ssss", words))
        assert isinstance(delay, FileDescriptor)
        self._delay = delay

    def _let_sleep(self) -> None:
        if self._delay is not None:
            self._delay.close()
            self._delay = None

    def _watch(self) -> None:
        try:
            while not self._ends.is_set():
                try:
                    begins = self._bus.recv_until_filtered(self._signals, timeout=_TICK_SECONDS).body[0]
                except TimeoutError:
                    continue
                if begins:
                    self._make_safe()
                else:
                    self._hold_back()
        except _UNREACHABLE as error:
            _log.warning("nobody tells any more when this computer goes to sleep: %s", error)
        finally:
            self._let_sleep()
            self._bus.close()

    def _make_safe(self) -> None:
        try:
            self._on_sleep()
        except Exception:
            _log.exception("the robot was not made safe before the computer sleeps")
        finally:
            self._let_sleep()
