"""What pages ask of jobs, recordings and models, over the wire; and what they may not have."""

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.sync.client import connect

from softform_console.control_channel import ControlChannel
from softform_console.job_commands import JobCommands
from softform_console.job_desk import JobDesk, job_routes
from softform_console.job_messages import Shelf
from softform_console.job_records import JobStore
from softform_console.job_runner import JobRunner
from softform_console.model_shelf import TO_SWITCH, in_use, models_in
from softform_console.run_files import RunFiles
from softform_core.errors import SoftformError
from softform_core.paths import models_of

pytestmark = pytest.mark.slow

sys.path.insert(0, str(Path(__file__).parent))

from served_console import Served, until  # noqa: E402

METADATA = """rosbag2_bagfile_information:
  duration:
    nanoseconds: 2500000000
  files:
  - duration:
      nanoseconds: 1
    message_count: 1
  message_count: 42
"""


class WithJobs(Served):
    """A server with jobs whose program tells its words, then waits while there is a file `hold`."""

    def __init__(self, folder):
        self.runs, self.moves, self.told = folder / "runs", [], []
        (folder / "secret.txt").write_text("secret")
        program = folder / "program.py"
        program.write_text(
            "import os, sys, time\nprint(*sys.argv[1:], flush=True)\n"
            f"while os.path.exists({str(folder / 'hold')!r}): time.sleep(0.05)\n"
        )
        self.hold = folder / "hold"
        self.files = RunFiles(self.runs)
        self.commands = JobCommands("membrane", "/lab", self.files.recording)
        self.runner = JobRunner(JobStore(self.runs), self.tell, (sys.executable, str(program)), 0.5)
        super().__init__(folder / "dist")

    def tell(self, notice):
        self.told.append(notice)
        self.control.tell(notice)

    def check(self, epoch):
        self.moves.append(epoch)
        if epoch == 6:
            raise SoftformError("The robot was stopped.", "Look at it.")

    def channel(self, desk):
        return ControlChannel(JobDesk(desk, self.runner, self.commands, self.check), self.role, time.time, "1.2.3")

    def others(self):
        return job_routes(self.runner, self.commands, self.files, self.shelf)

    def shelf(self):
        models = models_in(models_of("membrane"))
        return Shelf(
            recordings=self.files.recordings(), models=models, in_use=in_use(lambda: None), to_switch=TO_SWITCH
        )

    def get(self, path):
        answer, said = self.request("GET", path)
        assert answer.status == 200
        return json.loads(said)

    def words(self):
        deadline = time.monotonic() + 20.0
        while not self.told:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return self.get("/jobs")["log"]

    @contextmanager
    def operator(self):
        with connect(self.url("/control"), origin=self.origin()) as one:
            one.send('{"type":"operate","take":true}')
            while until(one, "state")["operator"] != "you":
                pass
            yield one


@pytest.fixture
def page(tmp_path):
    one = WithJobs(tmp_path)
    yield one
    one.runner.close()
    one.server.close()
    one.stops.close()


def start(control, command, *arguments, epoch="7"):
    stamp = until(control, "state")["stamp"]
    said = {"type": "start_job", "epoch": epoch, "stamp": stamp, "command": command, "arguments": arguments}
    control.send(json.dumps(said))


def bag(folder, metadata=METADATA):
    folder.mkdir(parents=True)
    (folder / "bag.mcap").write_bytes(b"0123456789")
    if metadata:
        (folder / "metadata.yaml").write_text(metadata)
    return folder


def test_a_job_is_started_watched_from_another_page_and_cancelled(page):
    page.hold.touch()
    with page.operator() as control:
        start(control, "evaluate", "--all")
        while not page.get("/jobs")["log"]:
            time.sleep(0.02)
    told = page.get("/jobs")  # the page that started it is gone
    assert told["log"] == ["evaluate --robot membrane --all"] and told["jobs"][0]["state"] == "running"
    evaluate = next(one for one in told["kinds"] if one["command"] == "evaluate")
    assert evaluate["options"][0]["default"] == "membrane" and "membrane" in evaluate["options"][0]["choices"]
    assert [one["command"] for one in told["kinds"] if one["moves"]] == ["collect", "commission"]
    with page.operator() as control:
        start(control, "simulate")
        assert "A job runs: evaluate" in until(control, "notice")["text"]
        control.send(json.dumps({"type": "cancel_job", "id": told["jobs"][0]["id"]}))
        assert "was cancelled" in until(control, "notice")["text"]
    assert page.get("/jobs")["jobs"][0]["state"] == "cancelled" and page.moves == []


def test_only_the_operator_starts_and_cancels(page):
    with connect(page.url("/control"), origin=page.origin()) as control:
        start(control, "evaluate")
        assert "watches" in until(control, "notice")["text"]
        control.send('{"type":"cancel_job","id":"x"}')
        assert "watches" in until(control, "notice")["text"]
    assert page.get("/jobs")["jobs"] == []


def test_what_moves_the_robot_is_asked_for_in_the_epoch_that_its_user_saw(page):
    with page.operator() as control:
        start(control, "collect", "--frames", "3", epoch="6")
        assert until(control, "notice")["text"] == "The robot was stopped. Look at it."
        assert page.get("/jobs")["jobs"] == []
        start(control, "commission", epoch="6")
        assert page.get("/jobs")["jobs"] == []
        start(control, "collect", "--frames", "3")
        assert page.words() == ["collect --robot membrane --attach --namespace lab --frames 3"]
    assert page.moves == [6, 6, 7]
    assert page.commands.words("commission", ["c3"]) == [*("commission", "--by", "person", "--namespace", "lab", "c3")]


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("commission", ["--by", "scanner"], "--by"),
        ("evaluate", ["--output", "x"], "--output"),
        ("evaluate", ["--json=/tmp/x"], "--json"),
        ("evaluate", ["--robot", "/etc/passwd"], "/etc/passwd"),
        ("evaluate", ["--robot", "../x.yaml"], "x.yaml"),
        ("evaluate", ["--help"], "--help"),
        ("evaluate", ["--"], "--"),
        ("evaluate", ["; rm -rf x"], "rm"),
        ("evaluate", ["--robot", "$(id)"], "id"),
        ("evaluate", ["surplus"], "surplus"),
        ("simulate", ["--samples", "0"], "not in the range"),
        ("simulate", ["--samples"], "requires an argument"),
        ("simulate", ["--samples", "many"], "not a valid integer"),
        ("train fk", ["--recipe", "odd"], "'odd' is not one of"),
        ("study", [], "Missing argument"),
        ("collect", ["--namespace", "x"], "--namespace"),
        ("collect", ["--by-hand"], "--by-hand"),
        ("replay", [], "not there"),
        ("replay", ["../runs"], "not there"),
        ("replay", ["bag", "--commands"], "--commands"),
        ("launch", ["softform"], "'launch' is no job"),
        ("train", ["fk"], "'train' is no job"),
    ],
)
def test_what_a_command_or_a_page_may_not_take_starts_nothing(page, command, arguments, said):
    bag(page.runs / "bag")
    with pytest.raises(SoftformError) as refused:
        page.commands.words(command, arguments)
    assert said in str(refused.value)


def test_recordings_are_listed_downloaded_in_parts_and_replayed(page):
    bag(page.runs / "bags" / "whole")
    bag(page.runs / "live" / "bags" / "cut", "")
    os.utime(page.runs / "bags" / "whole", (1.0, 1.0))
    bag(page.runs / "frames.zarr" / "no")
    whole, cut = sorted(page.get("/shelf")["recordings"], key=lambda one: one["recorded"])
    assert (whole["path"], whole["seconds"], whole["messages"]) == ("bags/whole", 2.5, 42)
    assert (cut["path"], cut["seconds"], cut["messages"]) == ("live/bags/cut", None, None)
    assert whole["files"] == [{"path": "bags/whole/bag.mcap", "size": 10}]
    answer, said = page.request("GET", "/runs/bags/whole/bag.mcap")
    assert (answer.status, said, answer.headers["content-length"]) == (200, "0123456789", "10")
    assert answer.headers["content-disposition"] == 'attachment; filename="bag.mcap"'
    answer, said = page.request("GET", "/runs/bags/whole/bag.mcap", Range="bytes=2-4")
    assert (answer.status, said) == (206, "234")
    with page.operator() as control:
        start(control, "replay", "bags/whole", "--rate", "2")
        assert page.words() == [f"replay {page.runs.resolve() / 'bags' / 'whole'} --rate 2"]


def test_a_report_is_shown_as_what_runs_nothing(page):
    (page.runs / "evaluate").mkdir(parents=True)
    (page.runs / "evaluate" / "report.html").write_text("<script>1</script>")
    answer, said = page.request("GET", "/runs/evaluate/report.html")
    assert (answer.status, said) == (200, "<script>1</script>")
    policies = [value for name, value in answer.getheaders() if name == "content-security-policy"]
    assert policies == ["sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert answer.headers["x-content-type-options"] == "nosniff" and "inline" in answer.headers["content-disposition"]


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", ".", "..", "../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "a/../../secret.txt"),
        *("%2e%2e%2fsecret.txt", "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "a%00.txt", "x" * 5000),
        *("link.txt", "folder/secret.txt", "state/console/key.pem", ".hidden/x.txt", "pipe.txt", "a", "none.txt"),
        *("loop/x.txt", "..%5csecret.txt", "%ff%fe.txt"),
    ],
)
def test_only_files_below_the_folder_of_runs_are_served(page, path):
    for folder in ("a", "state/console", ".hidden"):
        (page.runs / folder).mkdir(parents=True)
    (page.runs / "state" / "console" / "key.pem").write_text("secret")
    (page.runs / ".hidden" / "x.txt").write_text("secret")
    (page.runs / "link.txt").symlink_to(page.runs.parent / "secret.txt")
    (page.runs / "folder").symlink_to(page.runs.parent)
    (page.runs / "loop").symlink_to("loop")
    os.mkfifo(page.runs / "pipe.txt")
    (page.runs / "a" / "good.txt").write_text("good")
    assert page.request("GET", "/runs/a/good.txt")[1] == "good"
    answer, said = page.request("GET", f"/runs/{path}")
    assert answer.status == 404 and "secret" not in said.replace("This file", "")


def test_models_are_shown_with_their_cards_and_how_to_take_another(page):
    shelf = page.get("/shelf")
    names = [model["name"] for model in shelf["models"]]
    assert names[0] == "membrane: Forward kinematics of the robot 'membrane'" and "membrane/rig_default" in names[1]
    assert "Errors" in shelf["models"][0]["card"]
    assert "not known" in shelf["in_use"] and "`fem`: the simulator" in shelf["to_switch"]
    told = in_use(lambda: {"model": "learned", "model_folder": "", "sim_to_real": "auto"})
    assert told == "Started with: model learned, folder the robot's own, sim_to_real auto."
