"""Jobs, recordings and models, as pages ask for them: on /control and by GET."""

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from softform_console import protocol
from softform_console.control_channel import Desk
from softform_console.job_commands import ASKING, MOVING, JobCommands
from softform_console.job_messages import JobList, Shelf
from softform_console.job_runner import JobRunner
from softform_console.run_files import SHOWN, RunFiles

_ALONE = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Policy of what others have written, such as a report: it runs nothing, and is no page of this server."""


class JobDesk:
    """A desk that carries out jobs, and has another one do the rest.

    Args:
        desk: Does the rest.
        runner: Runs jobs.
        commands: What jobs may be.
        check: Raises SoftformError where the robot may not be moved now, in an epoch of the driver.
        replays: Whether a recording stands in for the robot, which its title says then.
    """

    def __init__(
        self,
        desk: Desk,
        runner: JobRunner,
        commands: JobCommands,
        check: Callable[[int], None],
        replays: bool = False,
    ) -> None:
        self._desk, self._runner, self._commands, self._check = desk, runner, commands, check
        self._mark = " (a recording, not the robot)" if replays else ""
        self.states, self.page_lost = desk.states, desk.page_lost

    def hello(self) -> list[protocol.RobotInfo]:
        """Return the robots."""
        return [one.model_copy(update={"title": one.title + self._mark}) for one in self._desk.hello()]

    def handle(self, message: protocol.ToServer) -> None:
        """Do what a page asks.

        Raises:
            SoftformError: If it cannot be done.
        """
        if isinstance(message, protocol.StartJob):
            words = self._commands.words(message.command, message.arguments)
            if message.command in MOVING:
                self._check(int(message.epoch))
            self._runner.start(words, message.command in ASKING)
        elif isinstance(message, protocol.AnswerJob):
            self._runner.answer(message.id, message.number, message.text)
        elif isinstance(message, protocol.CancelJob):
            self._runner.cancel(message.id)
        else:
            self._desk.handle(message)


def job_routes(runner: JobRunner, commands: JobCommands, files: RunFiles, shelf: Callable[[], Shelf]) -> list[Route]:
    """Return the routes of GET: /jobs, /shelf and /runs/PATH."""

    def job_list() -> str:
        return JobList(kinds=commands.kinds, jobs=runner.jobs(), log=runner.log()).model_dump_json()

    async def jobs(request: Request) -> Response:
        return Response(await run_in_threadpool(job_list), media_type="application/json")

    async def shelves(request: Request) -> Response:
        told = await run_in_threadpool(shelf)
        return Response(told.model_dump_json(), media_type="application/json")

    async def run(request: Request) -> Response:
        found = await run_in_threadpool(files.file, request.path_params["path"])
        if found is None:
            return PlainTextResponse("This file is not there, or not for pages.", 404)
        shown = SHOWN.get(found.suffix)
        return FileResponse(
            found,
            headers={"content-security-policy": _ALONE, "cache-control": "no-cache"},
            media_type=shown or "application/octet-stream",
            filename=found.name,
            content_disposition_type="inline" if shown else "attachment",
        )

    return [Route("/jobs", jobs), Route("/shelf", shelves), Route("/runs/{path:path}", run)]
