"""The command that prints what makes a shell complete commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from calibrant.cli.app import app, command


@command("completion")
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="whose script to print")],
    /,
) -> int:
    """Print the script that lets the tab key complete commands and options.

    ``calibrant --install-completion`` puts it where the shell finds it.
    """
    print(app.generate_completion(shell=shell))
    return 0
