"""Whether there is a screen, and the browser that shows a page on it."""

import os
import webbrowser


def has_display() -> bool:
    """Return whether this process may open windows: there is a display, and nobody said `CI`."""
    return not os.environ.get("CI") and any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def open_in_browser(address: str) -> bool:
    """Show a page in a browser with a window; returns whether one was found. May take seconds."""
    if not has_display():
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    # One of the terminal that was found, and that nobody chose, would write into the log.
    is_of_terminal = type(browser) is webbrowser.GenericBrowser and not os.environ.get("BROWSER")
    return not is_of_terminal and browser.open(address)
