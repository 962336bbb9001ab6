from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcfl import Association, Federation, Objective
from bcfl.methods import build
from bcfl.policies.capacity import FREE, ClusterSize
from bcfl.trackers import AdaptiveMultiHypothesis
from bcfl.trackers.proposals import Birth, Death, SplitAndFree
from tests.recipes import built

NAMES = tuple("abcdefghi")


def association(labels, clusters=3):
    return Association(NAMES[: len(labels)], np.array(labels), clusters)


def bounds(sizes, clients, labels, clusters=3):
    lower, upper = sizes.left_for(clients, association(labels, clusters))
    return lower.tolist(), upper.tolist()


def test_free_sizes_need_no_bounds():
    assert FREE.left_for("ab", association([0, 1])) == (None, None)
    assert FREE.free
    assert not ClusterSize(0, 5).free
    assert not ClusterSize(1).free


def test_clients_that_stay_take_up_room():
    """c, d, e stay in clusters 0, 0, 1; a and b leave whatever they were in."""
    assert bounds(ClusterSize(1, 3), "ab", [0, 2, 0, 0, 1]) == ([0, 0, 1], [1, 2, 3])
    assert bounds(ClusterSize(0, 2), "ab", [0, 2, 0, 0, 1]) == ([0, 0, 0], [0, 1, 2])
    assert bounds(ClusterSize(1), "b", [0, -1, 0, -1, 1]) == ([0, 0, 1], [3, 4, 5])


def test_too_few_clients_go_where_one_is_missing():
    """Fewest is 3. Nobody stays: 5 clients are 2, 2, 1; with 2, 0, 0 staying 2 are 2, 1, 1."""
    assert bounds(ClusterSize(3), "abcde", [-1] * 9) == ([1, 1, 1], [2, 2, 2])
    assert bounds(ClusterSize(3), "cd", [0, 0, *[-1] * 7]) == ([0, 1, 1], [0, 2, 2])
    assert bounds(ClusterSize(3), "a", [-1] * 9) == ([0, 0, 0], [1, 1, 1])
    assert bounds(ClusterSize(3, 3), NAMES, [-1] * 9) == ([3, 3, 3], [3, 3, 3])


@st.composite
def rounds(draw):
    """Bounds that fit some clients, and who takes part in each of some rounds."""
    clusters, clients = draw(st.integers(1, 4)), draw(st.integers(4, 9))
    lower = draw(st.integers(0, clients // clusters))
    least = max(-(-clients // clusters), 1)
    upper = draw(st.one_of(st.none(), st.integers(least, clients)))
    present = draw(
        st.lists(st.sets(st.sampled_from(NAMES[:clients]), min_size=1), min_size=1, max_size=6)
    )
    return clusters, clients, ClusterSize(lower, upper), present, draw(st.integers(0, 2**32 - 1))


def any_within(random, count, lower, upper):
    """A random association of clients within bounds, client by client; none is a dead end."""
    sizes, labels = np.zeros(len(lower), dtype=int), []
    for left in range(count, 0, -1):
        missing = np.maximum(lower - sizes, 0)
        open_ = missing > 0 if missing.sum() >= left else sizes < upper
        labels.append(int(random.choice(np.flatnonzero(open_))))
        sizes[labels[-1]] += 1
    assert (sizes >= lower).all()
    assert (sizes <= upper).all()
    return labels


@settings(max_examples=150, deadline=None)
@given(rounds())
def test_whoever_takes_part_bounds_hold_in_the_end(case):
    """The upper bound always holds; the lower one once all clients were seen."""
    clusters, clients, sizes, present, seed = case
    sizes.check(clusters, clients)
    random = np.random.default_rng(seed)
    now = Association.unseen(NAMES[:clients], clusters)
    for names in (*present, set(NAMES[:clients])):
        chosen = sorted(names)
        lower, upper = sizes.left_for(chosen, now)
        if lower is None:
            assert sizes.free
            continue
        assert (lower <= upper).all()
        labels = any_within(random, len(chosen), lower, upper)
        now = now.updated(dict(zip(chosen, labels, strict=True)))
        assert sizes.allows(now)
        assert sizes.upper is None or now.sizes.max() <= sizes.upper
        if (now.labels >= 0).all():
            assert now.sizes.min() >= sizes.lower


def test_what_is_allowed():
    assert ClusterSize(2, 3).allows(association([0, 0, 1, 1, 2, 2, 2]))
    assert not ClusterSize(0, 2).allows(association([0, 0, 0, 1]))
    assert not ClusterSize(1).allows(association([0, 0, 1, 1]))
    assert ClusterSize(1).allows(association([0, 0, 1, -1]))
    assert not ClusterSize(2).allows(association([0, 0, 1, -1]))
    assert FREE.allows(association([0, 0, 0, 0]))


@pytest.mark.parametrize("bounds", [(-1, 3), (3, 2), (0, 0)])
def test_impossible_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match=r"cluster_size must be \(lower, upper\) with 0 <= lower"):
        ClusterSize(*bounds)


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [((2, 3), (6, 9)), ((0, 2), (1, 6)), ((3, None), (9, 99)), ((2, 2), (6, 6))],
)
def test_bounds_must_fit_the_clients(sizes, fits):
    for count in fits:
        ClusterSize(*sizes).check(3, count)
    for count in (fits[0] - 1, fits[1] + 1 if sizes[1] else 8):
        if count == 0:
            continue
        with pytest.raises(ValueError, match=rf"does not fit {count} clients in 3 clusters"):
            ClusterSize(*sizes).check(3, count)


@pytest.fixture
def federation(make_client, linear):
    def of(name, sizes, clusters=3, count=9, seed=0, **options):
        chosen = dict(
            num_clusters=clusters,
            objective=Objective(local_steps=2, batch_size=4),
            cluster_size=sizes,
            first_clusters=1,
        )
        method = built(name, **chosen)
        if isinstance(method.tracker, AdaptiveMultiHypothesis):
            every = (SplitAndFree(min_members=2), Birth(min_members=2), Death())
            proposals = every if clusters == "auto" else every[:1]
            tracker = replace(method.tracker, near_copies=None, proposals=proposals)
            method = replace(method, tracker=tracker)
        clients = [make_client(f"c{i}", 6 + i, int(i > 6), tested=0) for i in range(count)]
        return Federation(clients, linear, method, seed=seed, device="cpu", **options)

    return of


@pytest.mark.parametrize(
    ("name", "clusters"),
    [("ifca", 3), ("bcfl-g", 3), ("bcfl-mh-3", 3), ("bcfl-mht-4", 3), ("bcfl-mht-4", "auto")],
)
@pytest.mark.parametrize("sizes", [(2, 4), (3, None), (3, 3)])
def test_no_hypothesis_breaks_its_bounds(federation, name, clusters, sizes):
    """Unequal groups, absent clients, drop-outs, splits and births."""
    limits = ClusterSize(sizes[0], None if clusters == "auto" else sizes[1])
    for seed in range(3):
        scattered = federation(
            name,
            (limits.lower, limits.upper),
            clusters,
            seed=seed,
            client_fraction=0.6,
            drop_out=0.2,
        ).run(7)
        seen = [
            a
            for s in scattered.state.history
            for a in (*s.associations, *(p.association for p in s.proposals))
        ]
        for one in seen:
            assert limits.upper is None or one.sizes.max() <= limits.upper
            if (one.labels >= 0).all():
                assert one.sizes.min() >= limits.lower


@pytest.mark.parametrize("name", ["bcfl-c-4", "bcfl-mht-4"])
@pytest.mark.parametrize("bounds", [(2, 4), (3, 3)])
def test_merged_associations_are_within_bounds(make_client, linear, name, bounds):
    """Expected sizes and labels; the clients are alike, so most probable clusters often are not."""
    clients = [make_client(f"c{i}", 6, tested=0) for i in range(9)]
    settings = dict(
        num_clusters=3,
        objective=Objective(local_steps=2, batch_size=4),
        cluster_size=bounds,
        temperature="mean",
    )
    (low, high), moved = bounds, 0
    for seed in range(6):
        run = Federation(clients, linear, built(name, **settings), seed=seed).run(4)
        for one in (a for snapshot in run.state.history for a in snapshot.associations):
            expected = one.serving.sum(axis=0)
            assert low - 1e-9 <= expected.min() <= expected.max() <= high + 1e-9
            assert low <= one.sizes.min() <= one.sizes.max() <= high
            moved += int((one.serving.argmax(axis=1) != one.labels).any())
    assert moved > 0


def test_bounds_that_do_not_fit_are_refused_in_words(federation):
    message = r"cluster_size \(0, 2\) does not fit 9 clients in 3 clusters"
    with pytest.raises(ValueError, match=message):
        federation("bcfl-g", (0, 2))
    message = r"cluster_size \(0, 4\) does not fit 9 clients in 1 clusters \(.*first_clusters"
    with pytest.raises(ValueError, match=message):
        federation("bcfl-mht-4", (0, 4), "auto")
    message = r"cluster_size must be \(lower, upper\) .*, got \(3, 2\)"
    with pytest.raises(ValueError, match=message):
        federation("bcfl-g", (3, 2))


@pytest.mark.parametrize(
    ("solver", "sizes", "message"),
    [
        ("argmin", (0, 4), "solver 'argmin' needs free cluster sizes"),
        ("heap", (1, None), "solver 'heap' needs free cluster sizes"),
        ("hungarian", (0, None), "at most 1 client per cluster, got an upper bound of none"),
        ("hungarian", (0, 2), "at most 1 client per cluster, got an upper bound of 2"),
    ],
)
def test_solvers_that_do_not_fit_the_bounds_are_refused_at_once(solver, sizes, message):
    with pytest.raises(ValueError, match=message):
        build("bcfl-mh-3", num_clusters=3, cluster_size=sizes, solver=solver)


@pytest.mark.parametrize(
    ("solver", "sizes"), [("hungarian", (0, 1)), ("murty", (2, 4)), ("auto", (1, None))]
)
def test_solvers_that_fit_the_bounds_run(make_client, linear, solver, sizes):
    clients = [make_client(f"c{i}", 6, tested=0) for i in range(3)]
    settings = dict(
        num_clusters=1 if sizes[0] == 2 else 3,
        objective=Objective(local_steps=2, batch_size=4),
        cluster_size=sizes,
    )
    run = Federation(clients, linear, build("bcfl-mh-3", **{**settings, "solver": solver})).run(2)
    assert run.hypotheses.best.association.sizes.max() <= (sizes[1] or 3)
