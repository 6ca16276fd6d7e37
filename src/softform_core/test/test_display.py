"""Who is shown a page, and in what."""

import webbrowser

import pytest

from softform_core.display import open_in_browser


@pytest.fixture
def opened(monkeypatch):
    """Pages that a browser was asked to show; the browser's class is what the test says."""
    pages = []
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("BROWSER", raising=False)
    for kind in (webbrowser.GenericBrowser, webbrowser.BackgroundBrowser):
        monkeypatch.setattr(kind, "open", lambda browser, url, *more: pages.append(url) or True)

    def use(kind):
        monkeypatch.setattr(webbrowser, "get", lambda: kind("browser"))
        return pages

    return use


def test_a_page_is_shown_in_a_window(opened):
    pages = opened(webbrowser.BackgroundBrowser)
    assert open_in_browser("http://127.0.0.1:8765/") and pages == ["http://127.0.0.1:8765/"]


def test_a_browser_of_the_terminal_is_asked_only_where_somebody_chose_it(opened, monkeypatch):
    pages = opened(webbrowser.GenericBrowser)
    assert not open_in_browser("http://127.0.0.1:8765/") and not pages
    monkeypatch.setenv("BROWSER", "mine")
    assert open_in_browser("http://127.0.0.1:8765/") and len(pages) == 1


@pytest.mark.parametrize(("name", "value"), [("DISPLAY", ""), ("CI", "true")])
def test_without_display_or_with_ci_nothing_is_shown(opened, monkeypatch, name, value):
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv(name, value)
    pages = opened(webbrowser.BackgroundBrowser)
    assert not open_in_browser("http://127.0.0.1:8765/") and not pages


def test_a_machine_without_browser_is_no_error(opened, monkeypatch):
    opened(webbrowser.BackgroundBrowser)

    def none():
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    assert not open_in_browser("http://127.0.0.1:8765/")
