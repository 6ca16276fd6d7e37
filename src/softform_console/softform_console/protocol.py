"""Messages between server and page, JSON both ways; web/src/protocol.ts is made from them by `console types`.

SI units throughout. An unknown field, an unknown type, NaN and infinity are refused.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from softform_console.message import (
    Epoch,
    Message,
    Name,
    Operator,
    Point,
    Pose,
    RobotIndex,
    Stamp,
    TargetId,
    Values,
    Vector,
)
from softform_console.motion_messages import (
    Foresee,
    GoHome,
    Motion,
    MotionState,
    Obstacle,
    Obstacles,
    PlanMotion,
    PlanPath,
    RunMotion,
)
from softform_console.object_messages import ObjectPreviewed, PreviewObject, ShapeObject, Shaping

VERSION = 2
"""Grows with each change that an older page would not understand."""

BEAT_SECONDS = 0.2
"""Period of the page's beats, s."""

DEAD_MAN_SECONDS = 0.5
"""Silence of a page that moves the robot after which the motion is ended, s."""

# Page to server. What moves the robot has the `epoch` of the driver (`DriverInfo`) that its user was looking at: it is
# dropped where the robot was stopped, at fault or reset since. It, and an answer to a job, has the `stamp` of the
# `State` that the page saw last, too: what was asked for in sight of one of more than 2 s ago is refused.


class Beat(Message):
    """Sent every `beat` s of hello; `t` comes back in `beat`, so that the page knows how long a round takes."""

    type: Literal["beat"] = "beat"
    t: float


class Operate(Message):
    """Become the operator, if there is none, or cease to be."""

    type: Literal["operate"] = "operate"
    take: bool


class Points(Message):
    """All points that are wanted, in place of those before; the servo follows with `optimise`, else the robot holds."""

    type: Literal["points"] = "points"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp
    points: Annotated[list[Point], Field(max_length=1000)]
    optimise: bool = True


class Actuators(Message):
    """Manual mode: a value for each actuator, in its unit, within its limits; ends with `release`."""

    type: Literal["actuators"] = "actuators"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp
    values: Values


class Release(Message):
    """End whatever this page moves, and let go of what is held: the driver makes the robot safe."""

    type: Literal["release"] = "release"
    robot: RobotIndex = 0


class Preview(Message):
    """Show an uploaded target as it would be meant, with the share that lies beside the robot; moves nothing."""

    type: Literal["preview"] = "preview"
    robot: RobotIndex = 0
    target: TargetId
    pose: Pose


class Reach(Message):
    """Bring the robot to an uploaded target."""

    type: Literal["reach"] = "reach"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp
    target: TargetId
    pose: Pose
    mode: Literal["plan", "move", "verify", "closed_loop"]
    partial: bool = False
    accept_unreachable: bool = False


class Program(Message):
    """Read a program (`softform_client.program`), which all pages then see, or run what was read as it stands here."""

    type: Literal["program"] = "program"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp
    text: Annotated[str, Field(max_length=100_000)]
    run: bool = False


class Cancel(Message):
    """Cancel the goal or program that runs; the robot holds where it is."""

    type: Literal["cancel"] = "cancel"
    robot: RobotIndex = 0


class Reset(Message):
    """Clear the faults that the page has seen: those of this epoch of the driver."""

    type: Literal["reset"] = "reset"
    robot: RobotIndex = 0
    epoch: Epoch
    stamp: Stamp


class StartJob(Message):
    """Start a command as a job: one of `JobList.kinds`, or `replay` with the path of a recording.

    `arguments` are its words; the epoch counts for what moves the robot.
    """

    type: Literal["start_job"] = "start_job"
    epoch: Epoch
    stamp: Stamp
    command: Name
    arguments: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=40)]


class CancelJob(Message):
    """Cancel a job: it is asked to end, as by Ctrl-C, and a while later made to."""

    type: Literal["cancel_job"] = "cancel_job"
    id: Name


class AnswerJob(Message):
    """Answer the question of that number of a job, with a line of text, which may be empty."""

    type: Literal["answer_job"] = "answer_job"
    stamp: Stamp
    id: Name
    number: int
    text: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class UseModel(Message):
    """Predict and solve with another kind of model, one of `RobotState.models`, from now on."""

    type: Literal["use_model"] = "use_model"
    robot: RobotIndex = 0
    model: Name


class Stop(Message):
    """Stop every robot; anybody may."""

    type: Literal["stop"] = "stop"


ToServer = Annotated[
    Beat
    | Operate
    | Points
    | Actuators
    | Release
    | Preview
    | Reach
    | Obstacles
    | PlanMotion
    | PlanPath
    | RunMotion
    | GoHome
    | Foresee
    | PreviewObject
    | ShapeObject
    | Program
    | Cancel
    | Reset
    | StartJob
    | CancelJob
    | AnswerJob
    | UseModel
    | Stop,
    Field(discriminator="type"),
]
to_server: TypeAdapter[ToServer] = TypeAdapter(ToServer)


# Server to page


class Actuator(Message):
    """An actuator: its SI unit, limits, value at rest and slew rate, unit/s."""

    name: str
    unit: str
    low: float
    high: float
    safe: float
    slew: float


class Output(Message):
    """What can be asked for: a patch or a skin, picked at (u, v), or a frame."""

    name: str
    kind: Literal["patch", "frame", "skin"]
    dimensions: int


class RobotInfo(Message):
    """A robot; `index` is that of the other messages and of scene frames. `size` m is its largest dimension.

    `holds`: arms that hold an object, which is what is shown, and shaped; `size` is the object's then.
    """

    index: int
    name: str
    title: str
    frame: str
    body: str
    size: float
    actuators: list[Actuator]
    outputs: list[Output]
    has_surface: bool
    holds: bool


class Hello(Message):
    """First message on /control."""

    type: Literal["hello"] = "hello"
    version: int
    softform: str
    beat: float
    dead_man: float
    operator: Operator
    robots: list[RobotInfo]


class Robots(Message):
    """The robots, where another one has come since hello."""

    type: Literal["robots"] = "robots"
    robots: list[RobotInfo]


class Pulse(Message):
    """Answer to a beat."""

    type: Literal["beat"] = "beat"
    t: float


class FramePlace(Message):
    """Where a frame of the robot is, m and quaternion x, y, z, w in the robot's frame."""

    name: str
    place: Vector
    rotation: tuple[float, float, float, float]


class Contact(Message):
    """Where the robot touches something by its model, m in its frame, and the force on it: an arrow from place to end.

    `name` is that of the obstacle, or `itself`; `share` the force over the largest one told (0 … 1).
    """

    name: str
    newtons: float
    points: list[Vector]
    place: Vector
    end: Vector
    share: float


class DriverInfo(Message):
    """What the driver says; `age` s since it said it. `epoch` goes back with `reset`. `all_at_rest`: as measured.

    `stopped`: it is at fault for nothing but a stop by request. `stands_still`: arms that hold an object, which brake
    where others come to rest, do so and stand still, as measured.
    """

    state: Literal["safe", "running", "fault", "offline", "holding", "making_safe", "silent"]
    reason: str
    holder: str
    faults: list[str]
    warnings: list[str]
    epoch: str
    age: float
    all_at_rest: bool
    stands_still: bool
    stopped: bool


class ServoInfo(Message):
    """What the servo says; errors m, latency s; null where it says nothing."""

    state: Literal["off", "tracking", "holding", "yielded"]
    reason: str
    mean_error: float | None
    max_error: float | None
    latency: float | None
    converged: bool
    commands: int
    iterations: int
    deadlines_missed: int


class RobotState(Message):
    """A robot now; values in the actuators' order and units, null where not known; `measured` also at rest.

    `steering` is what this console does with it, for whichever page is the operator. `points` are those in force,
    `obstacles` those that motions are planned past. `model` is the kind that predicts and solves, empty where nodes
    differ or do not say; `models` are those that there are. `past_known`: what the robot did before the driver began to
    measure cannot matter any more.
    """

    robot: int
    driver: DriverInfo
    servo: ServoInfo | None
    commanded: list[float] | None
    measured: list[float] | None
    settled: bool
    past_known: bool
    frames: list[FramePlace]
    contacts: list[Contact]
    steering: Literal["none", "points", "held", "manual", "goal"]
    points: list[Point]
    obstacles: list[Obstacle]
    model: str
    models: list[str]


class State(Message):
    """Everything that changes, at 10 Hz; `stamp` s since the epoch, which goes back with what is asked for."""

    type: Literal["state"] = "state"
    stamp: float
    operator: Operator
    clients: int
    robots: list[RobotState]


class Stopped(Message):
    """How a stop goes, to all pages; `seconds` since it was asked for.

    asked, then acknowledged (the driver has told each device), then confirmed (each is measured at rest), or else
    unconfirmed, with the reason.
    """

    type: Literal["stopped"] = "stopped"
    stage: Literal["asked", "acknowledged", "confirmed", "unconfirmed"]
    message: str
    seconds: float


class Notice(Message):
    """Something to be read, with what to do about it; `about` is the type of the message that it answers, if any."""

    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"]
    about: str
    text: str


class Previewed(Message):
    """The target of a preview, which comes as a scene frame too.

    `beside` is the share (0 … 1) of it that lies beside the robot; null where that is not known, as with pose free.
    """

    type: Literal["previewed"] = "previewed"
    robot: int
    target: int
    pose: Pose
    beside: float | None
    text: str


class GoalProgress(Message):
    """Progress of the goal that runs; errors m."""

    type: Literal["goal"] = "goal"
    robot: int
    target: int
    stage: str
    iteration: int
    round: int
    mean_error: float | None
    max_error: float | None


class GoalResult(Message):
    """End of a goal; errors m, predicted and measured. `error_code` 0: reached."""

    type: Literal["goal_result"] = "goal_result"
    robot: int
    target: int
    error_code: int
    text: str
    actuators: list[float]
    mean_error: float | None
    max_error: float | None
    measured_mean_error: float | None
    measured_max_error: float | None
    solve_time: float
    iterations: int


class ProgramRow(Message):
    """A block of a program: how many others it lies in, its number, such as `2.1`, its line, and what it does."""

    depth: int
    number: str
    line: int
    title: str


class ProgramRead(Message):
    """A program that was read; `fault` says why it cannot be run."""

    type: Literal["program_read"] = "program_read"
    robot: int
    text: str
    title: str
    rows: list[ProgramRow]
    fault: str


class ProgramState(Message):
    """How the program goes: what the block of a row does or did; at its end, where it ended, if not done, and why."""

    type: Literal["program_state"] = "program_state"
    robot: int
    row: int | None
    text: str
    ended: Literal["", "done", "stopped", "failed"]


FromServer = Annotated[
    Hello
    | Robots
    | Pulse
    | State
    | Stopped
    | Notice
    | Previewed
    | GoalProgress
    | GoalResult
    | Motion
    | MotionState
    | ObjectPreviewed
    | Shaping
    | ProgramRead
    | ProgramState,
    Field(discriminator="type"),
]
from_server: TypeAdapter[FromServer] = TypeAdapter(FromServer)


class Uploaded(Message):
    """Answer to POST /targets: `size` m of its box; `text` says what is doubtful, such as the unit."""

    id: int
    name: str
    vertices: int
    triangles: int
    size: Vector
    text: str
