"""What the server answers about jobs, recordings and models: JSON of GET /jobs and GET /shelf; as in `protocol`."""

from typing import Literal

from softform_console.message import Message


class JobOption(Message):
    """An option of a job, or its argument where the name is empty; `default` is what it is without."""

    name: str
    kind: Literal["number", "text", "choice", "flag"]
    choices: list[str]
    default: str
    help: str


class JobKind(Message):
    """A command that can be a job; `moves`: it moves the robot."""

    command: str
    about: str
    moves: bool
    options: list[JobOption]


class Question(Message):
    """What a job asks; `number` goes back with the answer. `choices` are words that it takes, if it says so."""

    number: int
    text: str
    choices: list[str]


class Job(Message):
    """A job; times s since the epoch. `done` 0 … 1 and `left` s are of the step that it is at, null if not said.

    `files` are what it made, paths of GET /runs. `question` waits for an `answer_job`; null if none does.
    `lost`: the console that started it ended, and it with that.
    """

    id: str
    command: str
    state: Literal["running", "ending", "done", "failed", "cancelled", "lost"]
    started: float
    ended: float | None
    step: str
    done: float | None
    left: float | None
    text: str
    files: list[str]
    question: Question | None


class JobList(Message):
    """Answer to GET /jobs: the newest first; `log` are the last lines of the newest."""

    kinds: list[JobKind]
    jobs: list[Job]
    log: list[str]


class RunFile(Message):
    """A file to be had by GET /runs/PATH, with its size in bytes."""

    path: str
    size: int


class Recording(Message):
    """A bag below the folder of runs; `seconds` and `messages` null where it was not closed."""

    path: str
    recorded: float
    seconds: float | None
    messages: int | None
    files: list[RunFile]


class Model(Message):
    """A trained model: its folder, and its card in Markdown."""

    name: str
    card: str


class Shelf(Message):
    """Answer to GET /shelf: the newest recordings first; the robot's models, and what the stack uses of them."""

    recordings: list[Recording]
    models: list[Model]
    in_use: str
    to_switch: str
