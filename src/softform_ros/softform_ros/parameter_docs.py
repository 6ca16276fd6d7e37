"""Write each node's parameter table into its page in `docs/nodes`.

A page holds a pair of marks, and the table of the named module comes between them::

    <!-- parameters softform_pneumatics.family:PARAMETERS -->
    <!-- /parameters -->
"""

import importlib
import re
from pathlib import Path

import click

from softform_ros.parameters import parameter_table_markdown

_MARKED = re.compile(r"(<!-- parameters (?P<module>[\w.]+):(?P<table>\w+) -->\n).*?(<!-- /parameters -->)", re.DOTALL)


def with_current_tables(page: str) -> str:
    """Return the Markdown `page` with every marked parameter table made anew."""

    def table_of(match: re.Match[str]) -> str:
        table = getattr(importlib.import_module(match["module"]), match["table"])
        return f"{match[1]}{parameter_table_markdown(table)}\n{match[4]}"

    return _MARKED.sub(table_of, page)


@click.command()
@click.argument("docs", type=click.Path(exists=True, file_okay=False, path_type=Path), default="docs/nodes")
def main(docs: Path) -> None:
    """Bring the parameter tables of every page below DOCS up to date."""
    for path in sorted(docs.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        current = with_current_tables(page)
        if current != page:
            path.write_text(current, encoding="utf-8")
            click.echo(f"updated {path}")


if __name__ == "__main__":
    main()
