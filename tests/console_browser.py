"""Debian's chromium on the console's page, with software WebGL, and a list of all that it asked for."""

import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"),
]
PATIENCE = 60.0

_REFUSED = "window.refused = []; addEventListener('securitypolicyviolation', e => window.refused.push(e.blockedURI))"


class Tab:
    """A page in a browser; what it asks of hosts, refuses and complains of is kept."""

    def __init__(self, page):
        self.page, self.asked, self.complaints = page, [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))

    def open(self, address):
        """Load the page and wait for its first picture; returns how long that took, s."""
        begun = time.monotonic()
        self.page.goto(address + "/")
        self.wait("window.softformPicture && window.softformPicture.firstPicture !== null", "the first picture")
        return time.monotonic() - begun

    def wait(self, expression, what):
        """Wait until an expression holds; `wait_for_function` is refused by the page's policy."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self.page.evaluate(expression)):
            if time.monotonic() > deadline:
                seen = self.page.evaluate("document.body.innerText")[:400]
                raise AssertionError(f"waited in vain: {what}; {self.page.url} shows {seen!r}; {self.complaints}")
            time.sleep(0.03)
        return found

    def place(self, output, u, v):
        """Where (u, v) of an output is, m."""
        return self.page.evaluate(f"window.softformPicture.place('{output}', {u}, {v})")

    def screen(self, place):
        """Where a place is on the screen, px."""
        return self.page.evaluate(f"window.softformPicture.screen({[float(one) for one in place]})")

    @property
    def outside(self):
        """What it asked of other hosts, or was refused to."""
        asked = {url for url in self.asked if urlparse(url).hostname not in ("127.0.0.1", None)}
        return asked | set(self.page.evaluate("window.refused"))


@contextmanager
def tab(browser, **options):
    """A page of its own profile."""
    context = browser.new_context(viewport={"width": 900, "height": 600}, **options)
    context.add_init_script(_REFUSED)
    try:
        yield Tab(context.new_page())
    finally:
        context.close()


@contextmanager
def browsers():
    """Chromium; the test is skipped where it or Playwright is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="requirements-playwright.txt is not installed")
    if not CHROMIUM.is_file():
        pytest.skip("apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
