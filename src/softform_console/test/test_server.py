"""The server as browsers, and others, meet it."""

import asyncio
import json
import ssl
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import connect as connect_in_one_thread
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from softform_console.access import COOKIE, Links
from softform_console.certificate import certificate
from softform_console.scene_frames import Kind, SceneItem

pytestmark = pytest.mark.slow

sys.path.insert(0, str(Path(__file__).parent))

from decoded_frame import decoded  # noqa: E402
from served_console import served, until  # noqa: E402


@pytest.fixture
def page(tmp_path):
    (tmp_path / "index.html").write_text("<p>the page")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "main.js").write_text("1")
    with served(tmp_path) as one:
        yield one


def opened(page, path, **options):
    return connect(page.url(path), origin=page.origin(), **options)


def test_the_page_is_served_with_a_policy_that_allows_no_other_host(page):
    for path, text in (("/", "<p>the page"), ("/assets/main.js", "1")):
        answer, said = page.request("GET", path)
        assert (answer.status, said) == (200, text)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "http" not in policy and "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "same-origin" and "server" not in answer.headers
    assert page.request("GET", "/../PROTOCOL.md")[0].status == 404


def test_without_a_page_there_is_the_stop(tmp_path):
    with served(tmp_path / "none") as one:
        answer, said = one.request("GET", "/")
        assert answer.status == 200 and "not built" in said and "action=/stop" in said


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "", "127.0.0.1.evil.example"])
def test_another_name_for_this_server_is_not_served(page, host):
    assert page.request("GET", "/", Host=host)[0].status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_another_pages_requests_are_refused(page, origin):
    origin = origin.format(port=page.port)
    assert page.request("POST", "/stop", Origin=origin)[0].status == 403
    assert page.request("POST", "/targets?name=a.ply&unit=mm&robot=0", b"x", Origin=origin)[0].status == 403
    for path in ("/control", "/scene", "/stop"):
        with pytest.raises(InvalidStatus) as refused:
            connect(page.url(path), origin=origin or None)
        assert refused.value.response.status_code == 403
    assert page.driver.stops == 0 and page.uploads == []


def test_the_stop_works_as_a_form_as_a_request_and_on_both_sockets(page):
    answer, said = page.request("GET", "/stop")
    assert answer.status == 200 and "<form method=post action=/stop>" in said and "<script" not in said
    answer, said = page.request("POST", "/stop")
    assert answer.status == 200 and "Stopped: every actuator was measured at rest" in said
    answer, said = page.request("POST", "/stop", Accept="application/json")
    assert json.loads(said)["stage"] == "confirmed"
    with opened(page, "/stop") as stop, opened(page, "/control") as control:
        stop.send('{"type":"stop"}')
        stages = [json.loads(stop.recv(timeout=5.0))["stage"] for _ in range(3)]
        assert stages == ["asked", "acknowledged", "confirmed"]
        assert [until(control, "stopped")["stage"] for _ in range(3)] == stages
        control.send('{"type":"stop"}')
        while json.loads(stop.recv(timeout=5.0))["stage"] != "confirmed":
            pass
    assert page.driver.stops == 4


def test_bytes_stop_too_and_garbage_on_any_socket_is_answered_or_passed_over(page, caplog):
    with opened(page, "/stop") as stop, opened(page, "/control") as control, opened(page, "/scene") as scene:
        for garbage in (b"\x00\xff" * 50, "[" * 10_000, '{"type":"points","epoch":1e400}'):
            control.send(garbage)
            assert "refused" in until(control, "notice")["text"]
        scene.send("no acknowledgement")
        stop.send(b"\x01")
        while json.loads(stop.recv(timeout=5.0))["stage"] != "confirmed":
            pass
        control.send('{"type":"stop"}')
        while until(control, "stopped")["stage"] != "confirmed":
            pass
    assert page.driver.stops >= 1 and not [one for one in caplog.records if one.levelname == "ERROR"]


def test_a_page_is_greeted_told_the_state_and_answered_beats(page):
    with opened(page, "/control") as control:
        hello = json.loads(control.recv(timeout=5.0))
        assert (hello["type"], hello["softform"], hello["operator"]) == ("hello", "1.2.3", "none")
        robot = hello["robots"][0]
        assert robot["name"] == "membrane" and len(robot["actuators"]) == 9 and robot["outputs"][0]["kind"] == "patch"
        control.send('{"type":"beat","t":12.5}')
        assert until(control, "beat")["t"] == 12.5
        begun = time.monotonic()
        states = [until(control, "state") for _ in range(11)]
        assert time.monotonic() - begun > 0.7, "no more than ten a second"
        assert states[-1]["robots"][0]["driver"]["epoch"] == "7" and states[-1]["clients"] == 1


def points(control, output="skin"):
    target = {"id": 1, "output": output, "u": 0.5, "v": 0.5, "target": [0, 0, 0.1]}
    stamp = until(control, "state")["stamp"]
    return json.dumps({"type": "points", "epoch": "7", "stamp": stamp, "points": [target]})


def test_one_page_operates_others_watch_and_what_is_wrong_is_answered(page):
    with opened(page, "/control") as one, opened(page, "/control") as two:
        one.send(points(one))
        assert "watches" in until(one, "notice")["text"]
        one.send('{"type":"operate","take":true}')
        while until(one, "state")["operator"] != "you":
            pass
        two.send('{"type":"operate","take":true}')
        assert "Another page" in until(two, "notice")["text"]
        assert until(two, "state")["operator"] == "other"
        two.send(points(two))
        assert "watches" in until(two, "notice")["text"]
        assert page.desk.handled == []
        one.send(points(one))
        stamp = until(one, "state")["stamp"]
        one.send(json.dumps({"type": "actuators", "epoch": "7", "stamp": stamp, "values": [1e9]}))
        assert until(one, "notice")["text"] == "Out of range. Less."
        one.send('{"type":"points","epoch":"7","stamp":1,"points":[{"id":1}]}')
        assert "points.0.output" in until(one, "notice")["text"]
        one.send(points(one, "boom"))
        assert "boom" in until(one, "notice")["text"]
        assert [one.type for one in page.desk.handled] == ["points"]


@pytest.mark.parametrize("kind", ["points", "reset", "start_job", "answer_job"])
def test_what_waited_while_page_line_or_console_stood_still_moves_nothing(page, kind):
    message = {
        "points": lambda: json.loads(points(one)),
        "reset": lambda: {"type": "reset", "epoch": "7"},
        "start_job": lambda: {"type": "start_job", "epoch": "7", "command": "collect", "arguments": []},
        "answer_job": lambda: {"type": "answer_job", "id": "1", "number": 1, "text": "yes"},
    }[kind]
    with opened(page, "/control") as one:
        one.send('{"type":"operate","take":true}')
        while until(one, "state")["operator"] != "you":
            pass
        clicked = json.dumps({**message(), "stamp": until(one, "state")["stamp"]})
        page.slept += 2.1
        one.send(clicked)
        assert "stood still" in until(one, "notice")["text"] and page.desk.handled == []
        one.send(json.dumps({**message(), "stamp": 1.0}))
        assert "stood still" in until(one, "notice")["text"] and page.desk.handled == []
        one.send(json.dumps({**message(), "stamp": until(one, "state")["stamp"]}))
        one.send('{"type":"actuators","epoch":"7","stamp":1}')
        until(one, "notice")
        assert [one.type for one in page.desk.handled] == [kind]


def test_the_motion_ends_with_the_operators_page(page):
    with opened(page, "/control") as two:
        with opened(page, "/control") as one:
            one.send('{"type":"operate","take":true}')
            while until(one, "state")["operator"] != "you":
                pass
        while until(two, "state")["operator"] != "none":
            pass
    assert page.desk.lost == 1


def test_scenes_wait_for_acknowledgements_and_the_newest_wins(page):
    with opened(page, "/scene") as scene:
        for number in range(3):
            page.store.put(SceneItem(Kind.CLOUD, 0, float(number), np.zeros((5, 3), np.float32)))
        first = decoded(scene.recv(timeout=5.0))
        page.store.put(SceneItem(Kind.CLOUD, 0, 8.0, np.zeros((5, 3), np.float32)))
        page.store.put(SceneItem(Kind.CLOUD, 0, 9.0, np.zeros((5, 3), np.float32)))
        with pytest.raises(TimeoutError):
            scene.recv(timeout=0.3)
        scene.send(np.uint32(first.seq).tobytes())
        assert decoded(scene.recv(timeout=5.0)).stamp == 9.0


def test_a_line_that_takes_nothing_holds_up_no_stop(page):
    with opened(page, "/scene"), opened(page, "/stop") as stop:
        stuck = threading.Event()
        for number in range(50):
            page.store.put(SceneItem(Kind.CLOUD, 0, float(number), np.zeros((200_000, 3), np.float32)))
        stuck.wait(0.2)
        begun = time.monotonic()
        stop.send("stop")
        while json.loads(stop.recv(timeout=5.0))["stage"] != "confirmed":
            pass
        assert time.monotonic() - begun < 1.0


def test_targets_are_uploaded_and_refused_with_the_reason(page):
    answer, said = page.request("POST", "/targets?name=a.ply&unit=mm&robot=0", b"bytes")
    assert answer.status == 200 and json.loads(said)["vertices"] == 3 and page.uploads == [("a.ply", b"bytes")]
    answer, said = page.request("POST", "/targets?name=a.ply&unit=&robot=0", b"bytes")
    assert answer.status == 400 and "unit" in json.loads(said)["message"]


def test_beyond_this_computer_each_address_lets_one_browser_in_and_tls_is_spoken(tmp_path):
    (tmp_path / "index.html").write_text("<p>the page")
    files = certificate(tmp_path / "keys", ["localhost", "127.0.0.1"])
    assert files[1].stat().st_mode & 0o777 == 0o600
    before = files[0].read_bytes()
    assert certificate(tmp_path / "keys", ["localhost"])[0].read_bytes() == before
    assert certificate(tmp_path / "keys", ["another"])[0].read_bytes() != before
    files = certificate(tmp_path / "keys", ["localhost", "127.0.0.1"])
    trusted = ssl.create_default_context(cafile=str(files[0]))
    printed = []
    with served(tmp_path, links=Links(printed.append), certificate=files) as page:
        import http.client

        def request(path, method="GET", **headers):
            connection = http.client.HTTPSConnection("127.0.0.1", page.port, context=trusted, timeout=10.0)
            connection.request(method, path, headers=headers)
            return connection.getresponse()

        assert request("/").status == request("/?token=other").status == 401
        assert request("/stop", "POST", Origin=f"https://127.0.0.1:{page.port}").status == 401
        assert request(f"/?token={printed[0]}", "HEAD").status == 401 and len(printed) == 1
        answer = request(f"/?token={printed[0]}")
        cookie = answer.headers["set-cookie"]
        assert answer.status == 303 and all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Secure"))
        assert request(f"/?token={printed[0]}").status == 401 and len(printed) == 2  # it was used
        known = cookie.partition(";")[0]
        assert printed[0] not in known and request("/", Cookie=known).status == 200
        other = request(f"/?token={printed[1]}").headers["set-cookie"].partition(";")[0]
        assert other != known and request("/", Cookie=other).status == request("/", Cookie=known).status == 200
        assert request("/", Cookie=f"{COOKIE}={printed[2]}").status == 401
        origin = f"https://127.0.0.1:{page.port}"
        asyncio.run(only_with_its_cookie(page.url("/control").replace("ws:", "wss:"), origin, trusted, known))


async def only_with_its_cookie(url, origin, trusted, cookie):
    # in one thread: OpenSSL lets no two threads use one connection, as the client with threads does
    async with asyncio.timeout(30.0):
        with pytest.raises(InvalidStatus):
            await connect_in_one_thread(url, origin=origin, ssl=trusted)
        headers = {"Cookie": cookie}
        async with connect_in_one_thread(url, origin=origin, ssl=trusted, additional_headers=headers) as control:
            assert json.loads(await control.recv())["type"] == "hello"
