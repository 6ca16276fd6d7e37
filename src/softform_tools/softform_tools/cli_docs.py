"""The command `docs`: builds the site of the pages, and serves it on this machine."""

import http.server
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import click

from softform_core.errors import SoftformError
from softform_core.paths import home


def build_site(root: Path) -> Path:
    """Build the pages of a checkout's `docs/` with search and reference, offline; return the site's folder.

    Raises:
        SoftformError: If the extra is not installed, or a page or link is wrong.
    """
    libraries, pages, site = root / ".venv" / "docs", root / "docs", root / "build" / "docs"
    if not (pages / "conf.py").is_file():
        raise SoftformError(f"There are no pages in {root}.", "Call ./softform docs in a checkout.")
    if not (libraries / "sphinx").is_dir():
        raise SoftformError(
            f"There is no Sphinx in {libraries}.",
            "Install it: .venv/bin/pip install --no-deps --require-hashes --target .venv/docs -r requirements-docs.txt",
        )
    if not os.access(site if site.exists() else root, os.W_OK):
        raise SoftformError(
            f"You may not write into {site}.", "Read the pages in docs, or build them in your own copy."
        )
    search = os.pathsep.join([str(libraries), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(pages), str(site)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": search}, check=False)
    if done.returncode:
        raise SoftformError("The site could not be built.", "Correct what is named above.")
    return site


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8016, show_default=True, help="Where it is served.")
@click.option("--no-serve", is_flag=True, help="Build only.")
def docs(port: int, no_serve: bool) -> None:
    """Build these pages as a site with index, search and reference, and serve it to this machine.

    \b
    Examples:
      ./softform docs                  then open http://127.0.0.1:8016
      ./softform docs --no-serve       only build, into build/docs
    """  # noqa: D301
    click.echo("Building the site, a minute the first time …")
    site = build_site(home())
    if no_serve:
        click.echo(f"Built: {site / 'index.html'}")
        return
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise SoftformError(
            f"Port {port} cannot be used: {error.strerror}.", "Choose another one by --port, or 0."
        ) from error
    with server:
        click.echo(f"Open http://127.0.0.1:{server.server_port} in a browser; Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("Ended.")
