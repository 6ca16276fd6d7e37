"""Contact on a running stack: a membrane that bulges against a ball tells where and how hard, also on the page."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from console_browser import browsers, tab
from console_pages import Observer, Page, address_of, page_of
from PIL import Image
from visualization_msgs.msg import MarkerArray

from softform_client.client import ActuatorPath, ShapeClient
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.newton import find_equilibria
from softform_ros.qos import PREDICTED_SURFACE

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

VALUES = np.full(9, 3500.0)
ARROW = np.array([215, 38, 61])
"""Colour of the largest force on the page."""


@pytest.fixture(scope="module")
def pressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The membrane with few cells under a ball."""
    pytest.importorskip("ipctk", reason="ipctk is not installed")
    content = yaml.safe_load(robot_file("membrane").read_text()) | {"name": "pressed"}
    content["body"] |= {
        "cells": 12,
        "contact": {
            "obstacles": [{"shape": "sphere", "name": "ball", "centre": [0.0, 0.0, 0.055], "radius": 0.04}],
            "reach": 0.002,
        },
    }
    content["surfaces"] = [{"patch": "sheet", "rows": 12, "columns": 12, "degree": 3}]
    path = tmp_path_factory.mktemp("pressed") / "pressed.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def coloured(picture: bytes) -> int:
    """Pixels of a picture that have the arrow's colour."""
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)
    return int((np.abs(pixels - ARROW).max(axis=2) < 30).sum())


class Touching:
    """A stack whose robot touches the ball, as the model without it says."""

    def __init__(self, stack: Any, robot: Robot) -> None:
        body = robot.body.simulator()
        (self.touch,) = body.touches(find_equilibria(body, VALUES[None]).unknowns[0])
        self.force = float(np.linalg.norm(self.touch.force))
        self.address, self.observer, self.heard = address_of(stack), Observer(), list[MarkerArray]()
        self.observer.node.create_subscription(MarkerArray, "predicted_contact", self.heard.append, PREDICTED_SURFACE)

    def newtons(self) -> float:
        """Of the newest text; 0 without one."""
        texts = [marker.text for marker in self.heard[-1].markers if marker.ns == "contact text"]
        return float(texts[0].removeprefix("ball ").removesuffix(" N")) if texts else 0.0

    def shown(self, page: Page) -> dict:
        """The contact that a page is told, once it is as hard as that."""

        def is_there(state: dict) -> bool:
            contacts = state["robots"][0]["contacts"]
            return len(contacts) == 1 and abs(contacts[0]["newtons"] - self.force) < 0.1 * self.force

        return page.wait_for("state", is_there)["robots"][0]["contacts"][0]

    def press(self) -> None:
        """Inflate it, and wait for the force."""
        with ShapeClient() as client:
            client.follow(ActuatorPath(VALUES[None]))
        self.observer.wait_for(lambda: abs(self.newtons() - self.force) < 0.1 * self.force, "the force of the model")


@pytest.fixture(scope="module")
def touching(pressed: Path, stacks: Any) -> Iterator[Touching]:
    stacks.close()
    one = Touching(stacks.launched_with({"robot": str(pressed), "model": "fem"}), load_robot(str(pressed)))
    yield one
    one.observer.close()
    stacks.close()


def test_where_a_robot_touches_and_how_hard_is_told(touching):
    with page_of(touching.address) as page:
        touching.observer.wait_for(lambda: touching.heard, "markers of a robot that touches nothing")
        assert [marker.ns for marker in touching.heard[-1].markers] == [""] and page.robot["contacts"] == []
        touching.press()
        contact = touching.shown(page)
        assert contact["name"] == "ball" and contact["share"] == 1.0
        assert np.linalg.norm(np.subtract(contact["place"], touching.touch.place)) < 0.005
        assert contact["end"][2] < contact["place"][2], "the ball pushes it down"


def test_the_page_shows_it_and_hides_it(touching, tmp_path):
    touching.press()
    with page_of(touching.address) as page:
        contact = touching.shown(page)
    with browsers() as browser, tab(browser, viewport={"width": 1500, "height": 900}) as one:
        one.open(touching.address)
        one.wait("window.softformPicture.place('sheet', 0.5, 0.5)", "the sheet")
        one.page.locator("details summary", has_text="Show and hide").click()
        x, y = one.screen(contact["end"])
        clip = {"x": x - 60, "y": y - 60, "width": 120, "height": 120}
        for _ in range(100):
            if shown := coloured(one.page.screenshot(clip=clip)):
                break
            one.page.wait_for_timeout(100)
        one.page.screenshot(path=Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path)) / "contact.png")
        assert shown > 20
        one.page.locator("[data-layer=contact]").click()
        one.page.wait_for_timeout(1500)
        assert coloured(one.page.screenshot(clip=clip)) < shown // 4
        assert one.outside == set() and one.complaints == []
