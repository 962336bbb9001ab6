"""Figures of a run, or of several by name.

Each function takes a `Run` or a mapping from names to runs, with one panel for each, and draws on
the matplotlib axes `ax` that it is given, or on those of a new figure of pyplot, which notebooks
and `pyplot.show()` display. It returns the axes, of several runs an array of them:
`ax.figure.savefig("name.svg")` writes one. matplotlib is imported when a figure is made, and its
settings are left alone.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bcfl.analysis.pairs import pair_reliability
from bcfl.analysis.uncertainty import Reliability
from bcfl.drawing import (
    MOST_CLIENTS,
    ClientGraph,
    GraphPicture,
    HypothesisLineage,
    Memberships,
    draw_association_reliability,
    draw_client_graphs,
    draw_cluster_sizes,
    draw_hypothesis_weights,
    draw_reliability,
    draw_uncertain_clients,
    in_style,
)
from bcfl.hypotheses.numbering import LeadingClusters
from bcfl.protocol.statistics.label_predictions import LabelSums
from bcfl.protocol.statistics.predictions import PredictionSums
from bcfl.runtime import as_given

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bcfl.analysis.run import Run

    Drawn: TypeAlias = Any  # Axes of a run, (runs,) array of Axes of several

Options = ParamSpec("Options")


def as_method(
    plot: Callable[Concatenate[Run | Mapping[str, Run], Options], Drawn],
) -> Callable[Concatenate[Run, Options], Drawn]:
    """A figure as a method of `Run`, whose help names no argument that the run itself is.

    Args:
        plot: one of the figures of this module.
    """

    @wraps(plot)
    def method(self: Run, /, *args: Options.args, **options: Options.kwargs) -> Drawn:
        return plot(self, *args, **options)

    taken = inspect.signature(plot)
    _, *others = taken.parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parts = r" +runs: .*\n|, one for each run(?=;)|; of several runs, \(runs,\) an array of them"
    text = re.sub(parts, "", plot.__doc__ or "")
    method.__doc__ = re.sub(r"bcfl\.analysis\.(plot_\w+)\(run, ", r"run.\1(", text)
    method.__signature__ = taken.replace(parameters=[own, *others])  # type: ignore[attr-defined]
    return method


def plot_association_graph(
    runs: Run | Mapping[str, Run],
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    most_clients: int | None = MOST_CLIENTS,
    legend: bool = True,
) -> Any:  # noqa: ANN401 - one Axes, or an array
    """Clients joined by the probability of sharing a cluster, as believed after the last round.

    The wider an edge, the more probable; the shape of a client is its true group; all panels share
    one layout.

    Args:
        runs: a run, or several by name.
        ax: to draw on, one for each run; by default those of a new figure.
        most_clients: show at most so many, evenly from all groups; None shows all.
        legend: whether shapes and widths are explained: below the panels of a new figure, or below
            the clients on the last of given axes.

    Returns:
        The matplotlib axes; of several runs, (runs,) an array of them.

    Raises:
        ValueError: no run is given, or one has done no round.
        TypeError: a run is of another type, or its name no text.

    Example:
        With `run` of the example of `bcfl.Federation`, on axes of a figure of one's own:

        >>> from matplotlib.figure import Figure
        >>> figure = Figure()
        >>> axes = bcfl.analysis.plot_association_graph(run, figure.add_subplot())
        >>> axes.figure is figure
        True
    """
    graphs = {
        name: ClientGraph.of(run.association_graph(), most_clients)
        for name, run in _named(runs).items()
    }
    picture = GraphPicture.of(graphs)
    assert picture is not None
    return _drawn(
        runs, len(graphs), ax, lambda given: draw_client_graphs(picture, given, legend=legend)
    )


def plot_cluster_sizes(
    runs: Run | Mapping[str, Run], ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None
) -> Any:  # noqa: ANN401 - one Axes, or an array
    """Clients per cluster of the leading hypothesis over rounds, as stacked bands.

    A cluster has one number and colour in all rounds, see `bcfl.hypotheses.cluster_numbers`; those
    of the last round have the lowest.

    Args:
        runs: a run, or several by name.
        ax: to draw on, one for each run; by default those of a new figure.

    Returns:
        The matplotlib axes; of several runs, (runs,) an array of them.
    """
    sizes = {
        name: LeadingClusters.of(run.state.history).sizes.tolist() if run.state.history else []
        for name, run in _named(runs).items()
    }
    return _drawn(runs, len(sizes), ax, lambda given: draw_cluster_sizes(sizes, given))


def plot_hypothesis_weights(
    runs: Run | Mapping[str, Run], ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None
) -> Any:  # noqa: ANN401 - one Axes, or an array
    """Weights of the hypotheses over rounds, as stacked ribbons in the colours of their lineages.

    Args:
        runs: a run, or several by name.
        ax: to draw on, one for each run; by default those of a new figure.

    Returns:
        The matplotlib axes; of several runs, (runs,) an array of them.
    """
    lineages = {
        name: HypothesisLineage.of(run.hypothesis_tree()) for name, run in _named(runs).items()
    }
    return _drawn(runs, len(lineages), ax, lambda given: draw_hypothesis_weights(lineages, given))


def plot_uncertain_clients(
    runs: Run | Mapping[str, Run],
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    legend: bool = True,
) -> Any:  # noqa: ANN401 - one Axes, or an array
    """Association probabilities of the clients by descending entropy.

    At most 20 clients of each run are shown, and none with an entropy below 0.056 nats, that of
    99 % in one cluster and 1 % in another.

    Args:
        runs: a run, or several by name.
        ax: to draw on, one for each run; by default those of a new figure.
        legend: whether a new figure has one.

    Returns:
        The matplotlib axes; of several runs, (runs,) an array of them.
    """
    memberships = {
        name: Memberships.of(
            run.client_cluster_graph(),
            LeadingClusters.of(run.state.history).num_clusters if run.state.history else 0,
        )
        for name, run in _named(runs).items()
    }
    return _drawn(
        runs,
        len(memberships),
        ax,
        lambda given: draw_uncertain_clients(memberships, given, legend=legend),
    )


def plot_reliability(
    runs: Run | Mapping[str, Run],
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    legend: bool = True,
) -> Any:  # noqa: ANN401 - one Axes, or an array
    """Accuracy against confidence of the clients' tests after the last round, in 15 bins.

    Of labels, the share of samples with a label against the probability that it is present. On the
    diagonal confidence is right. Bars are 95 % intervals after Wilson, as of independent samples;
    numbers at the top count the samples of each bin.

    Args:
        runs: a run, or several by name.
        ax: to draw on, one for each run; by default those of a new figure.
        legend: whether a new figure has one.

    Returns:
        The matplotlib axes; of several runs, (runs,) an array of them.

    Raises:
        ValueError: no client of a run was tested, or a run predicts numbers.
    """
    bins = {name: {name: _tested(name, run)} for name, run in _named(runs).items()}
    return _drawn(runs, len(bins), ax, lambda given: draw_reliability(bins, given, legend=legend))


def plot_association_reliability(
    runs: Run | Mapping[str, Run], ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None
) -> Any:  # noqa: ANN401 - one Axes, or an array
    """Share of pairs of one true group against the probability that they share a cluster.

    Pairs of clients are in ten bins of equal width; on the diagonal probabilities are right. Bars
    are 90 % intervals of a bootstrap over clients, since pairs that have a client in common are not
    independent; numbers at the top count the pairs of each bin.

    Args:
        runs: a run, or several by name.
        ax: to draw on, one for each run; by default those of a new figure.

    Returns:
        The matplotlib axes; of several runs, (runs,) an array of them.

    Raises:
        ValueError: fewer than two clients of a run have a known group.
    """
    bins = {name: pair_reliability([_pairs(name, run)]) for name, run in _named(runs).items()}
    return _drawn(runs, len(bins), ax, lambda given: draw_association_reliability(bins, given))


def _pairs(name: str, run: Run) -> tuple[NDArray[np.float64], list[int | None]]:
    groups = [run.groups.get(client) for client in run.clients]
    if sum(group is not None for group in groups) < 2:
        raise ValueError(f"runs must know the true groups of two clients, {name!r} does not")
    return run.co_association(), groups


def _tested(name: str, run: Run) -> Reliability:
    if run.model.likelihood == "gaussian":
        raise ValueError(
            f"runs must predict classes or labels, {name!r} predicts numbers; its metrics() have "
            "the coverage of intervals"
        )
    tested = [sums for sums in run.tested.values() if sums.num_samples]
    if tested and run.model.likelihood == "categorical":
        total = PredictionSums.total(tested)
        return _reliability(total.bin_counts, total.bin_confidence, total.bin_correct)
    if tested and run.model.likelihood == "bernoulli":
        of_all = LabelSums.total(tested)
        bins = (of_all.bin_counts, of_all.bin_probability, of_all.bin_present)
        return _reliability(*(sums.sum(axis=0) for sums in bins))
    raise ValueError(f"runs must have tested their clients, {name!r} has not")


def _reliability(
    counts: NDArray[np.int64], confidence: NDArray[np.float64], correct: NDArray[np.int64]
) -> Reliability:
    filled = counts > 0
    return Reliability(
        counts[filled].astype(np.int64),
        confidence[filled] / counts[filled],
        correct[filled] / counts[filled],
        len(counts),
    )


def _named(runs: Run | Mapping[str, Run]) -> Mapping[str, Run]:
    from bcfl.analysis.run import Run

    expected = "runs must be a Run, or a mapping from names to runs such as {'mine': run}"
    named = runs if isinstance(runs, Mapping) else {"run": runs}
    if not named:
        raise ValueError("runs must hold at least one run, got none")
    for name, run in named.items():
        if not isinstance(run, Run):
            where = f" for {name!r}" if isinstance(runs, Mapping) else ""
            near = "; its attribute run is one" if hasattr(type(run), "run") else ""
            raise TypeError(f"{expected}, got a {type(run).__name__}{where}{near}")
        if not isinstance(name, str):
            raise TypeError(f"{expected}, got the name {name!r}")
    return named


def _check_axes(given: Sequence[object]) -> None:
    from matplotlib.axes import Axes

    for one in given:
        if not isinstance(one, Axes):
            raise TypeError(
                "ax must be Axes of matplotlib, such as pyplot.figure().add_subplot() makes, got "
                f"{as_given(one)}"
            )


def _drawn(
    runs: Run | Mapping[str, Run],
    count: int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
    draw: Callable[[Sequence[Axes]], Figure],
) -> Drawn:
    """The axes of a run, or (panels,) those of several, drawn on in the style of all figures."""
    given = list(np.ravel(np.array([] if ax is None else ax, dtype=object)))
    if ax is not None and len(given) != count:
        raise ValueError(f"ax must be {count} axes, one for each run, got {len(given)}")
    _check_axes(given)
    with in_style():
        figure = draw(given)
    if ax is None:
        from matplotlib import pyplot

        pyplot.figure(FigureClass=cast("type[Figure]", lambda **settings: figure))
    places = given or figure.axes[:count]
    return np.array(places, dtype=object) if isinstance(runs, Mapping) else places[0]
