"""A thread that polls a folder of scans and hands on what it finds, so that reading never blocks a node."""

from collections.abc import Callable

from softform_capture.scanner.folder_source import FolderSource, RejectedFile, ScanFile
from softform_core.errors import reason_of
from softform_core.periodic import PeriodicThread


class FolderWatcher(PeriodicThread):
    """Polls a `FolderSource` until stopped.

    Args:
        source: Folder in which exports appear.
        period: Time between two polls, s.
        on_scan: Called in the thread for each export that was read; a `SoftformError` from it rejects the export.
        on_rejected: Called in the thread for each export that cannot be used.
        on_folder: Called in the thread after each poll, with what is wrong with the folder, or "" if it can be read.
    """

    def __init__(
        self,
        source: FolderSource,
        period: float,
        on_scan: Callable[[ScanFile], None],
        on_rejected: Callable[[RejectedFile], None],
        on_folder: Callable[[str], None],
    ) -> None:
        super().__init__("folder watcher", period, self._look)
        self._source = source
        self._on_scan, self._on_rejected, self._on_folder = on_scan, on_rejected, on_folder

    def _look(self) -> None:
        try:
            found = self._source.poll()
            self._on_folder("")
        except Exception as error:  # nothing that a drive does may end the watch
            self._on_folder(reason_of(error))
            return
        for result in found:
            if self._stop.is_set():
                return
            if isinstance(result, RejectedFile):
                self._on_rejected(result)
                continue
            try:
                self._on_scan(result)
            except Exception as error:  # one bad file must not end the watch
                self._on_rejected(RejectedFile(result.path, reason_of(error)))
