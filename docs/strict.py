"""Run by IPython when it starts a notebook: a command after `!` that fails is an error."""

from subprocess import CalledProcessError

shell = get_ipython()  # noqa: F821 - IPython defines it
run = shell.system


def system(command: str) -> None:
    """Run a command and check its exit status.

    Args:
        command: for the shell.

    Raises:
        CalledProcessError: it failed.
    """
    run(command)
    status = shell.user_ns["_exit_code"]
    if status:
        raise CalledProcessError(status, command)


shell.system = system
