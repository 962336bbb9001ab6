"""`bcfl preview`: who holds which samples, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bcfl.runtime import counted
from experiments.commands.overrides import overridden
from experiments.commands.shared import (
    Debug,
    ScenarioName,
    console,
    explained,
    make_room,
    sizes,
)

if TYPE_CHECKING:
    from experiments.partitions import Partition

MOST_ROWS = 60
"""Clients that are listed one by one."""
MOST_NAMES = 20
"""Names of classes that are listed."""


@explained
def preview(
    scenario: ScenarioName,
    *,
    seed: Annotated[int | None, typer.Option(help="Seed; the first of the scenario.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Draw clients by classes into this .svg, .png or .pdf.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that is searched first for data.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Show which client holds how many samples of which class, without training."""
    del debug
    from experiments.config.scenario import load
    from experiments.config.sections import in_file

    if out is not None and out.suffix not in (".svg", ".png", ".pdf"):
        raise ValueError(f"--out must end in .svg, .png or .pdf, got {str(out)!r}")
    chosen = overridden(load(scenario), {"data-dir": data_dir})
    if out is not None:
        make_room(out, "--out")
    from experiments.runs.runner import Experiment

    drawn = chosen.seeds[0] if seed is None else seed
    with in_file(scenario):
        partition = Experiment(scenario=chosen, device="cpu").partition(drawn)
    screen = console()
    screen.print(_headline(chosen.name, drawn, partition), soft_wrap=True)
    for line in rows(partition):
        screen.print(line, soft_wrap=True)
    if out is not None:
        _draw(partition, out)
        typer.echo(str(out))


def _headline(name: str, seed: int, partition: Partition) -> str:
    samples = counted(partition.num_samples, "sample")
    left_out = f", {partition.num_left_out} left out" if partition.num_left_out else ""
    parts = [partition.source, *sizes(partition), partition.name, f"{samples}{left_out}"]
    return f"{name}, seed {seed}   {' · '.join(parts)}"


def rows(partition: Partition) -> list[str]:
    """Lines of text: samples by client, view and class, and what no client holds.

    Streams show the concept of each time step; of many clients the first are listed.

    Args:
        partition: clients with their samples.
    """
    from experiments.partitions import classes_with_samples

    counts, groups = partition.class_counts(), partition.groups or {}
    wide = max(len(data.client) for data in partition)
    digits = max(5, len(str(counts.max())) + 1)
    shown = classes_with_samples(counts)
    classes = "".join(f"{f'y={label}':>{digits}}" for label in shown)
    lines = [f"{'client':<{wide}}  group  train   test  {classes}"]
    for data, row in list(zip(partition, counts, strict=True))[:MOST_ROWS]:
        concepts = partition.concepts.get(data.client)
        group = "".join(map(str, concepts)) if concepts else str(groups.get(data.client, "-"))
        sizes = [_samples(data.num_samples, view) for view in ("train", "test")]
        held = "".join(f"{count:>{digits}}" for count in row[shown])
        lines.append(f"{data.client:<{wide}}  {group:>5}  {sizes[0]:>5}  {sizes[1]:>5}  {held}")
    if len(partition) > MOST_ROWS:
        lines.append(f"... and {len(partition) - MOST_ROWS} more clients")
    if len(shown) < partition.num_classes:
        lines.append(f"{partition.num_classes - len(shown)} classes without samples are not shown")
    lines += class_legend(partition)
    lines += legend(partition)
    lines += [f"{count} samples {reason}" for reason, count in partition.left_out.items()]
    return lines


def class_legend(partition: Partition) -> list[str]:
    """A line with the names of the classes; none where there are none, or they are the numbers.

    Args:
        partition: clients with their samples.
    """
    names = partition.class_names
    if names == tuple(map(str, range(len(names)))):
        return []
    shown = [f"{number} {name}" for number, name in enumerate(names)]
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return [f"classes of {partition.source}: {', '.join(shown[:MOST_NAMES])}{more}"]


def legend(partition: Partition) -> list[str]:
    """Lines that say what the groups, or concepts, of a partition hold; none where classes tell.

    Args:
        partition: clients with their samples.
    """
    if partition.concepts:
        what, held = "concept", {c for own in partition.concepts.values() for c in own}
    else:
        what, held = "group", set((partition.groups or {}).values())
    names = enumerate(partition.group_names)
    return [f"{what} {number}: {name}" for number, name in names if number in held]


def _samples(sizes: Mapping[str, int], view: str) -> int:
    """Samples of a view over all time steps."""
    return sum(count for name, count in sizes.items() if name.partition(":")[0] == view)


def _draw(partition: Partition, out: Path) -> None:
    from bcfl.drawing import in_style
    from experiments.reports.pictures.bubbles import draw_partition
    from experiments.reports.pictures.concepts import draw_stream

    counts = partition.class_counts()
    with in_style():
        if partition.concepts:
            names = [data.client for data in partition]
            figure = draw_stream(
                partition.concepts,
                dict(zip(names, counts, strict=True)),
                names=partition.group_names,
            )
        else:
            figure = draw_partition(
                counts, [data.group for data in partition], names=partition.group_names
            )
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)
