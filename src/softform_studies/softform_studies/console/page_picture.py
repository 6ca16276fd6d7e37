"""The picture of the operator's page: a robot that follows points which were dragged."""

from pathlib import Path

from softform_studies.console.browser import chromium, tab

_WINDOW = {"width": 1280, "height": 800}
_DRAGGED = ((0.3, 0.3, 25), (0.55, 0.5, 0), (0.75, 0.75, 10))
"""Points of the surface, (u, v), and how far up each is dragged on the screen, px."""

_COMES_TO_REST_MS = 3000


def draw_page(address: str, output: str, file: Path) -> None:
    """Drag points of a surface in chromium, and save what the page shows once the robot has followed them.

    Args:
        address: Where the console of a launched stack is.
        output: The surface whose points are dragged.
        file: The picture, PNG.

    Raises:
        SoftformError: If chromium or Playwright is not installed.
    """
    with chromium() as browser, tab(browser, viewport=_WINDOW) as one:
        one.open(f"http://{address}")
        one.wait("document.querySelector('#status').dataset.tone === 'rest'", "a robot at rest")
        for count, (u, v, up) in enumerate(_DRAGGED, start=1):
            x, y = one.screen(one.place(output, u, v))
            one.page.mouse.move(x, y)
            one.page.mouse.down()
            one.page.mouse.move(x, y - up, steps=5)
            one.page.mouse.up()
            one.wait(f"document.querySelectorAll('.pins li').length === {count}", f"{count} points")
        one.page.wait_for_timeout(_COMES_TO_REST_MS)
        one.page.mouse.move(*_WINDOW.values())  # nothing is pointed at
        one.page.screenshot(path=file)
