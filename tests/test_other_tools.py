"""The layouts for RViz and Foxglove name topics and fields that the stack has, with the types that are shown there."""

import importlib
import json
import re
import time
from pathlib import Path

import pytest
import yaml
from visualization_msgs.msg import Marker

from softform_ros import qos
from softform_ros.background_node import BackgroundNode

CONFIG = Path(__file__).parents[1] / "config"
RVIZ = yaml.safe_load((CONFIG / "rviz" / "softform.rviz").read_text(encoding="utf-8"))["Visualization Manager"]
FOXGLOVE = json.loads((CONFIG / "foxglove" / "softform.json").read_text(encoding="utf-8"))
RECORDED = yaml.safe_load((CONFIG / "nodes" / "bag_recorder.yaml").read_text(encoding="utf-8"))
SHOWN = {"Marker": "visualization_msgs/msg/Marker", "PointCloud2": "sensor_msgs/msg/PointCloud2"}
PATIENCE = 30.0

STACK = {"motion_capture": "true"}


def of_rviz():
    """Topic, class and offered reliability of what RViz shows."""
    for one in RVIZ["Displays"]:
        if "Topic" in one:
            topic = one["Topic"]
            yield topic["Value"], one["Class"].removeprefix("rviz_default_plugins/"), topic["Reliability Policy"]


def of_panels(kind):
    return [panel for name, panel in FOXGLOVE["configById"].items() if name.startswith(f"{kind}!")]


def of_plots():
    """Topic and path of fields of each series."""
    for panel in (*of_panels("Plot"), *of_panels("StateTransitions")):
        for series in panel["paths"]:
            topic, _, fields = series["value"].partition(".")
            yield topic, fields


def field_type(kind, path):
    """The type of a field such as `value[3]` in a message."""
    for part in path.split("."):
        name, index = re.fullmatch(r"(\w+)(\[\d+\])?", part).groups()
        package, _, message = kind.split("/")
        of_message = getattr(importlib.import_module(f"{package}.msg"), message)
        kind = of_message.get_fields_and_field_types()[name]
        if index:
            kind = re.fullmatch(r"sequence<(.*)>", kind)[1]
    return kind


@pytest.fixture(scope="module")
def node(stack):
    with BackgroundNode("viewer", "/") as one:
        yield one


@pytest.fixture(scope="module")
def types(node):
    """Type of each topic in the graph, once all are there that are named."""
    wanted, deadline = {name for name, *_ in (*of_rviz(), *of_plots())}, time.monotonic() + PATIENCE
    while missing := wanted - (found := dict(node.get_topic_names_and_types())).keys():
        assert time.monotonic() < deadline, f"the stack has no {missing}"
        time.sleep(0.1)
    return {name: kinds[0] for name, kinds in found.items()}


@pytest.mark.long
def test_rviz_shows_what_the_stack_has(node, types):
    listed = list(of_rviz())
    assert len(listed) == 5 and RVIZ["Global Options"]["Fixed Frame"] == "membrane/base_link"
    for topic, shown, reliability in listed:
        assert types[topic] == SHOWN[shown], topic
        offered = {one.qos_profile.reliability.name for one in node.get_publishers_info_by_topic(topic)}
        assert reliability == "Best Effort" or "BEST_EFFORT" not in offered, f"RViz would hear nothing of {topic}"


@pytest.mark.long
def test_foxglove_shows_what_the_stack_has(types):
    (scene,) = of_panels("3D")
    assert {types[topic] for topic in scene["topics"]} == set(SHOWN.values())
    assert set(scene["topics"]) == {topic for topic, _, _ in of_rviz()} and scene["followTf"] == "membrane/base_link"
    series = list(of_plots())
    assert len(series) > 20
    for topic, fields in series:
        assert field_type(types[topic], fields) in ("double", "uint8", "string"), (topic, fields)
    (health,) = of_panels("DiagnosticSummary")
    assert types[health["topicToRender"]] == "diagnostic_msgs/msg/DiagnosticArray"


@pytest.mark.long
def test_each_panel_has_a_place_in_the_layout():
    def panels(part):
        return [part] if isinstance(part, str) else [*panels(part["first"]), *panels(part["second"])]

    assert sorted(panels(FOXGLOVE["layout"])) == sorted(FOXGLOVE["configById"])


@pytest.mark.long
def test_bags_hold_what_is_shown(types):
    topics = RECORDED["/**"]["ros__parameters"]["topics"]
    recorded = {name if name.startswith("/") else f"/softform/{name}" for name in topics}
    shown = {topic for topic, _, _ in of_rviz()} | {topic for topic, _ in of_plots()} | {"/tf", "/tf_static"}
    assert shown <= recorded


@pytest.mark.long
def test_surface_and_markers_are_seen_without_our_messages(node):
    surfaces, spheres = [], []
    node.create_subscription(Marker, "/softform/predicted_marker", surfaces.append, qos.PREDICTED_SURFACE)
    node.create_subscription(Marker, "/softform/captured_spheres", spheres.append, qos.CAPTURED_MARKERS)
    deadline = time.monotonic() + PATIENCE
    while not (surfaces and spheres):
        assert time.monotonic() < deadline, (surfaces, spheres)
        time.sleep(0.1)
    assert surfaces[-1].type == Marker.TRIANGLE_LIST and len(surfaces[-1].points) > 3000
    assert spheres[-1].type == Marker.SPHERE_LIST and len(spheres[-1].points) > 5
    assert surfaces[-1].header.frame_id == spheres[-1].header.frame_id == RVIZ["Global Options"]["Fixed Frame"]
