"""The program `steelyard`, to which every command adds itself."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from steelyard.errors import SteelyardError


class Commands(TyperGroup):
    """Commands whose errors are one sentence on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SteelyardError as error:
            message = str(error)
        except OSError as error:
            message = f"{error.filename or 'A file'}: {error.strerror or error}."
        typer.echo(f"steelyard: {' '.join(message.split())}", err=True)
        raise typer.Exit(2)


app = typer.Typer(
    cls=Commands,
    name="steelyard",
    help="Find the true dynamic model of a robot from its own motion.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the program."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steelyard {installed_version('steelyard')}")
        raise typer.Exit()


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
