"""Figures of the console that need browsers: first picture, picks, pointer to server, what four of them cost."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import psutil
from diagnostic_msgs.msg import DiagnosticArray

from softform_core.errors import SoftformError
from softform_interfaces.msg import TargetPoints
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import seconds_from_stamp
from softform_studies.console.browser import Tab, chromium, tab
from softform_studies.console.graphics_picks import compare_picks

_TRIES, _PICKS, _MOVES, _BROWSERS = 3, 200, 60, 4
_RAYS, _RAYS_AT_SKIN = 10_000, 300
_OUTPUT = "sheet"
_SMALL = {"width": 480, "height": 360}
"""Size of each of several pages, which one computer draws here, px."""

_UM_PER_M = 1e6
_PATIENCE, _WARM_SECONDS = 20.0, 3.0

_PICK = """([x, y]) => {
  const move = { clientX: x, clientY: y, pointerId: 1, pointerType: 'mouse', bubbles: true }
  const begun = performance.now()
  document.querySelector('canvas').dispatchEvent(new PointerEvent('pointermove', move))
  return performance.now() - begun
}"""
"""Time of one move over the picture, ms: the mesh's tree is brought up to date, and the ray is cast."""

_NOTE_MOVES = """addEventListener('pointermove',
  (event) => { window.movedAt = 1e-3 * (performance.timeOrigin + event.timeStamp) }, true)"""


def picture_figures(address: str) -> dict[str, object]:
    """Return times of first pictures and picks, and what was asked of other hosts, with meshes that move at 30 Hz.

    Picks by the graphics card are compared with those of a tree on the processor.
    """
    with chromium() as browser:
        firsts, picks, outside, agreement = [], list[float](), 0, None
        for _ in range(_TRIES):
            with tab(browser) as one:
                firsts.append(one.open(f"http://{address}"))
                if not picks:
                    picks = _picks(one, _OUTPUT)
                    agreement = compare_picks(one, _OUTPUT, _RAYS)
                outside += len(one.outside)
        renderer = _renderer(browser)
    assert agreement is not None
    return {
        "first_picture_s": round(float(np.median(firsts)), 2),
        "pick_ms_median": round(float(np.median(picks)), 2),
        "pick_ms_p95": round(float(np.percentile(picks, 95)), 2),
        "graphics_pick_rays": agreement.rays,
        "graphics_pick_footprint_um": round(_UM_PER_M * agreement.footprint, 3),
        "graphics_picks_that_differ": agreement.differ,
        "outside_requests": outside,
        "renderer": renderer,
    }


def skin_figures(address: str, skin: str) -> dict[str, object]:
    """Return times of picks on a skin, with meshes that move at 30 Hz, by the processor and by the graphics card."""
    figures: dict[str, object] = {}
    with chromium() as browser, tab(browser) as one:
        one.open(f"http://{address}")
        one.wait(f"window.softformPicture.place('{skin}', 0.5, 0.5)", "the skin")
        for name, on in (("skin_pick", "false"), ("skin_graphics_pick", "true")):
            one.page.evaluate(f"window.softformPicture.pickByGraphics({on})")
            picks = _picks(one, skin)
            figures[f"{name}_ms_median"] = round(float(np.median(picks)), 2)
            figures[f"{name}_ms_p95"] = round(float(np.percentile(picks, 95)), 2)
        agreement = compare_picks(one, skin, _RAYS_AT_SKIN)
    return {**figures, "skin_graphics_pick_footprint_um": round(_UM_PER_M * agreement.footprint, 3)}


def _renderer(browser: Any) -> str:
    """Return what draws: times of pictures and pointers mean little without it."""
    with tab(browser) as one:
        found = one.page.evaluate(
            """() => {
              const gl = document.createElement('canvas').getContext('webgl2')
              const told = gl && gl.getExtension('WEBGL_debug_renderer_info')
              return told ? gl.getParameter(told.UNMASKED_RENDERER_WEBGL) : 'not told'
            }"""
        )
    return str(found)


def _picks(one: Tab, output: str) -> list[float]:
    """Return times of picks at places over the surface, ms, each of a mesh that has moved since the last."""
    rng, times = np.random.default_rng(0), []
    for u, v in rng.uniform(0.05, 0.95, (_PICKS + 10, 2)):
        times.append(float(one.page.evaluate(_PICK, one.screen(one.place(output, u, v)))))
        time.sleep(0.04)
    return times[10:]


def steering_figures(
    address: str, seconds: float, steers: Callable[[], Any], watches: Callable[[int], Any]
) -> dict[str, object]:
    """Return times from pointer to server, and how the driver keeps its deadlines with four browsers and without.

    Four programs that take what four pages would take tell what the server costs; browsers beside them draw, too.

    Args:
        address: Where the stack's console is.
        seconds: How long the deadlines are watched, each time.
        steers: A context in which some page moves the robot.
        watches: A context in which so many programs take what pages take.
    """
    with BackgroundNode("browsers_observer", "softform") as node:
        targets: list[TargetPoints] = []
        node.create_subscription(TargetPoints, "target_points", targets.append, qos.TARGET_READER)
        loop = _Loop(node)
        with steers():
            alone = loop.met(seconds)
        with steers(), watches(_BROWSERS):
            served = loop.met(seconds)
        with chromium() as browser, ExitStack() as opened:
            with tab(browser) as first:  # software GL compiles what a point is drawn by, and the page is silent then
                first.open(f"http://{address}")
                _press(first)
                first.page.mouse.up()
                time.sleep(_WARM_SECONDS)
            with tab(browser) as one:
                one.open(f"http://{address}")
                times = _pointer_times(one, targets)
                outside = len(one.outside)
            tabs = [opened.enter_context(tab(browser, viewport=_SMALL)) for _ in range(_BROWSERS)]
            for other in tabs:
                other.open(f"http://{address}")
            _give_way()
            with steers():
                beside = loop.met(seconds)
            outside += sum(len(other.outside) for other in tabs)
    return {
        "event_to_server_ms_median": round(1e3 * float(np.median(times)), 1),
        "event_to_server_ms_p95": round(1e3 * float(np.percentile(times, 95)), 1),
        "deadlines_met": round(beside, 4),
        "deadlines_met_without_browsers": round(alone, 4),
        "deadlines_met_with_pages_that_draw_nothing": round(served, 4),
        "outside_requests": outside,
    }


def _give_way() -> None:
    """Let the browsers compute with what others leave, as they do on other computers: here they draw without a GPU."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "chrom" in process.name():
                process.nice(19)


def _press(one: Tab) -> list[float]:
    """Press the middle of a surface at rest; returns where that is on the screen, px."""
    one.wait("document.querySelector('#status').dataset.tone === 'rest'", "a robot at rest")
    x, y = one.screen(one.place(_OUTPUT, 0.5, 0.5))
    one.page.mouse.move(x, y)
    one.page.mouse.down()
    return [x, y]


def _pointer_times(one: Tab, targets: list[TargetPoints]) -> list[float]:
    """Drag a point up and down; return times from each move of the pointer to the target that the server sends, s."""
    x, y = _press(one)
    one.page.evaluate(_NOTE_MOVES)
    times = []
    for number in range(_MOVES + 10):
        before, count = _place(targets[-1:]), len(targets)
        one.page.mouse.move(x, y - 20 - 3 * (number % 10))
        deadline = time.monotonic() + _PATIENCE
        while not (moved := [each for each in targets[count:] if _place([each]) != before]):
            if time.monotonic() > deadline:
                said = one.page.inner_text("body")[:300]
                raise SoftformError(f"No target followed the pointer; the page says {said!r}.", "Is the computer busy?")
            time.sleep(0.001)
        times.append(seconds_from_stamp(moved[0].header.stamp) - float(one.page.evaluate("window.movedAt")))
        time.sleep(0.1)
    one.page.mouse.up()
    return times[10:]


def _place(messages: list[TargetPoints]) -> tuple[float, ...]:
    return tuple(each for one in messages for at in one.position for each in (at.x, at.y, at.z))


class _Loop:
    """The driver's loop, by its diagnostics."""

    def __init__(self, node: Any) -> None:
        self._counts: tuple[int, int] | None = None
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note, qos.DIAGNOSTICS)

    def _note(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if "loop ticks" in values:
                self._counts = int(values["loop ticks"]), int(values["loop overruns"])

    def met(self, seconds: float) -> float:
        """Return the share of its deadlines that it keeps in some seconds."""
        before = self._newest()
        time.sleep(seconds)
        after = self._newest()
        ticks, overruns = after[0] - before[0], after[1] - before[1]
        return ticks / (ticks + overruns)

    def _newest(self) -> tuple[int, int]:
        self._counts, deadline = None, time.monotonic() + _PATIENCE
        while self._counts is None:
            if time.monotonic() > deadline:
                raise SoftformError("The driver tells nothing.", "See the log of the stack.")
            time.sleep(0.02)
        return self._counts
