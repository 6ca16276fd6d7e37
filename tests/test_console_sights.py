"""What is looked at on the page: colours in mm, a cut, layers, plots as a table, a picture; and a point that slides."""

import csv
import time

import numpy as np
import pytest
from test_console_page import browser, grab, opened  # noqa: F401 - `browser` and `opened` are fixtures

from softform_core.paths import models_of

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


@pytest.fixture(scope="module")
def stack(stacks):
    yield stacks.launched_with({"sim_to_real": str(models_of("membrane") / "rig_default")})
    stacks.close()


def pictured(one):
    """The pixels of the scene, as bytes of a PNG."""
    time.sleep(0.7)
    return one.page.locator("canvas").first.screenshot()


def test_a_point_slides_along_the_surface_and_the_robot_follows(opened, observer):  # noqa: F811
    (x, y), _ = grab(opened)
    opened.page.mouse.move(x, y - 50, steps=4)
    observer.wait_for(lambda: observer.targets and observer.targets[-1].position[-1].z > 0.01, "a lifted point")
    opened.page.keyboard.down("Shift")
    opened.page.mouse.move(x + 60, y + 20, steps=6)
    observer.wait_for(
        lambda: abs(observer.targets[-1].u[-1] - 0.5) + abs(observer.targets[-1].v[-1] - 0.5) > 0.05, "slid"
    )
    opened.page.mouse.up()
    opened.page.keyboard.up("Shift")
    last = observer.targets[-1]
    at = last.position[-1]
    wanted = np.array([at.x, at.y, at.z])
    assert np.linalg.norm(observer.surface(last.u[-1], last.v[-1]) - wanted) < 0.01  # on the robot, not in the air
    observer.wait_for(lambda: observer.is_at(last.u[-1], last.v[-1], wanted), "the surface is there")
    assert observer.commands[-1].source == "inverse_kinematics"


def test_colours_are_chosen_in_mm_and_the_surface_is_cut(opened, observer):  # noqa: F811
    deformed = pictured(opened)
    opened.page.get_by_label("Colours show").select_option("uncertainty")
    opened.wait("document.querySelector('.scale') !== null", "a scale")
    opened.wait("parseFloat(document.querySelectorAll('.scale-ticks span')[2].innerText) > 0", "its upper end")
    top = float(opened.page.locator(".scale-ticks span").nth(2).inner_text().split()[0])
    largest = 1e3 * max(observer.meshes[-1].values)
    assert largest <= top < 3.0 * largest
    uncertain = pictured(opened)
    assert uncertain != deformed
    opened.page.get_by_text("Show and hide").click()
    opened.page.get_by_label("Where the surface is cut, across x").fill("0.5")
    cut = pictured(opened)
    assert len({deformed, uncertain, cut}) == 3
    opened.page.locator("[data-layer=surface]").click()
    assert pictured(opened) != cut


def test_the_distance_of_the_scan_is_shown_once_something_was_scanned(opened):  # noqa: F811
    opened.page.get_by_label("Colours show").select_option("distance")
    opened.wait("document.querySelector('.scale') !== null", "a scale of the scan's distance")


def test_plots_are_saved_as_a_table_and_the_scene_as_a_picture(opened, observer, tmp_path):  # noqa: F811
    slider = opened.page.locator(".actuator input").first
    slider.focus()
    for _ in range(60):
        opened.page.keyboard.press("ArrowRight", delay=10)
    observer.wait_for(lambda: observer.measured.max() > 1000.0, "motion")
    opened.page.get_by_role("button", name="Plots").click()
    time.sleep(2.0)
    with opened.page.expect_download() as coming:
        opened.page.get_by_role("button", name="CSV").click()
    coming.value.save_as(tmp_path / "plots.csv")
    rows = list(csv.DictReader((tmp_path / "plots.csv").read_text().splitlines()))
    first = observer.values[-1].name[0]
    assert float(rows[-1][f"{first} measured Pa"]) == pytest.approx(observer.measured[0], abs=100.0)
    assert np.diff([float(row["time s"]) for row in rows]).min() > 0.0
    with opened.page.expect_download() as coming:
        opened.page.get_by_label("Save the picture as a PNG").click()
    coming.value.save_as(tmp_path / "scene.png")
    assert (tmp_path / "scene.png").read_bytes()[:4] == b"\x89PNG" and (tmp_path / "scene.png").stat().st_size > 5000
