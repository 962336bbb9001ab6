"""What processes hold in memory now, read from Linux."""

from pathlib import Path

PROCESSES = Path("/proc")


def held(process):
    """MB that a process holds, and that it and all processes below it do.

    Pages that several of them share are counted in equal parts, so that they count once.
    """
    children = {}
    for status in PROCESSES.glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    family = [process]
    for member in family:
        family += children.get(member, [])
    sizes = [proportional(member) for member in family]
    return sizes[0], sum(sizes)


def proportional(process):
    """MB of a process; 0 if it has ended."""
    try:
        lines = (PROCESSES / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
