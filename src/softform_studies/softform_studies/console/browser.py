"""Debian's chromium on the console's page, with software WebGL, and a list of all that it asked for."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from softform_core.errors import SoftformError

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    "--disable-gpu-compositing",  # what is not WebGL would be drawn by SwiftShader, too, for more than twice as much
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"),
]
PATIENCE = 60.0

_REFUSED = "window.refused = []; addEventListener('securitypolicyviolation', e => window.refused.push(e.blockedURI))"


class Tab:
    """A page in a browser; what it asks of hosts, refuses and complains of is kept."""

    def __init__(self, page: Any) -> None:
        self.page, self.asked, self.complaints = page, list[str](), list[str]()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._note)

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def open(self, address: str) -> float:
        """Load the page and wait for its first picture; returns how long that took, s."""
        self.page.goto(address + "/")
        self.wait("window.softformPicture && window.softformPicture.firstPicture !== null", "the first picture")
        return 1e-3 * float(self.page.evaluate("window.softformPicture.firstPicture"))

    def wait(self, expression: str, what: str) -> Any:
        """Wait until an expression holds, and return it; `wait_for_function` is refused by the page's policy."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self.page.evaluate(expression)):
            if time.monotonic() > deadline:
                seen = self.page.evaluate("document.body.innerText")[:400]
                raise AssertionError(f"waited in vain: {what}; {self.page.url} shows {seen!r}; {self.complaints}")
            time.sleep(0.03)
        return found

    def place(self, output: str, u: float, v: float) -> list[float]:
        """Where (u, v) of an output is, m."""
        found: list[float] = self.page.evaluate(f"window.softformPicture.place('{output}', {u}, {v})")
        return found

    def screen(self, place: Sequence[float]) -> list[float]:
        """Where a place is on the screen, px."""
        found: list[float] = self.page.evaluate(f"window.softformPicture.screen({[float(one) for one in place]})")
        return found

    @property
    def outside(self) -> set[str]:
        """What it asked of other hosts, or was refused to."""
        asked = {url for url in self.asked if urlparse(url).hostname not in ("127.0.0.1", None)}
        return asked | set(self.page.evaluate("window.refused"))


@contextmanager
def tab(browser: Any, **options: Any) -> Iterator[Tab]:
    """A page of its own profile."""
    context = browser.new_context(**({"viewport": {"width": 900, "height": 600}} | options))
    context.add_init_script(_REFUSED)
    try:
        yield Tab(context.new_page())
    finally:
        context.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, while the `with` block lasts.

    Raises:
        SoftformError: If it or Playwright is not installed.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        install = ".venv/bin/pip install --no-deps -r requirements-playwright.txt"
        raise SoftformError("Playwright is not installed.", f"Run {install}.") from error
    if not CHROMIUM.is_file():
        raise SoftformError(f"There is no {CHROMIUM}.", "Run apt-get install chromium.")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
