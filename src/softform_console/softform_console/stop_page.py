"""The stop that works without script, WebGL or socket: a plain form."""

from html import escape

from softform_console.protocol import Stopped

_STYLE = "font: 1.4em sans-serif; margin: 2em; background: #fff; color: #111"


def stop_form(said: str = "") -> str:
    """Return the page with the button, and above it what is to be said."""
    above = f"<p role=alert>{escape(said)}</p>" if said else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>Softform: stop</title><h1>Stop</h1>"
        f"{above}<form method=post action=/stop><button type=submit autofocus>STOP every robot</button></form>"
        "<p>It is stopped once the driver has measured every actuator at rest; the answer says so.</p>"
        "<p><a href=/>To the console</a></p></html>"
    )


def stop_answer(result: Stopped) -> str:
    """Return the page that says how a stop went."""
    if result.stage == "confirmed":
        said = f"Stopped: every actuator was measured at rest after {result.seconds:.1f} s. {result.message}"
    else:
        said = f"NOT CONFIRMED. {result.message}"
    return stop_form(said)
