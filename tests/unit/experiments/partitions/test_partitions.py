"""Partitions: who holds what, how it is split, and what is refused."""

import numpy as np
import pytest

from bcfl.data.clients import ClientData, sorted_clients
from experiments import datasets, partitions
from experiments.datasets import Dataset
from experiments.partitions.allocation import (
    dirichlet_counts,
    largest_remainder,
    raise_to_minimum,
)
from experiments.partitions.class_sets import draw_class_sets


@pytest.fixture(scope="module")
def digits():
    return datasets.load("optdigits")


def labelled(targets, classes=None):
    """Samples whose only input is their row number."""
    targets = np.asarray(targets, dtype=np.int64)
    rows = np.arange(len(targets), dtype=np.float32)[:, None]
    return Dataset("labelled", rows, targets, classes or int(targets.max()) + 1)


def balanced(per_class, classes=10):
    return labelled(np.repeat(np.arange(classes), per_class))


def rows_of(client):
    return np.concatenate([v.inputs.numpy().ravel() for v in client.views.values()]).astype(int)


# Whole numbers from shares


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [
        (10, [0.23, 0.41, 0.36], [2, 4, 4]),
        (7, [1 / 3, 1 / 3, 1 / 3], [3, 2, 2]),
        (1000, [0.004, 0.0951, 0.3009, 0.6], [4, 95, 301, 600]),
        (0, [0.5, 0.5], [0, 0]),
    ],
)
def test_largest_remainder(total, shares, expected):
    assert largest_remainder(total, np.array(shares)).tolist() == expected


@pytest.mark.parametrize(("alpha", "units"), [(0.1, 4), (10.0, 5)])
def test_dirichlet_shares_have_the_moments_of_the_distribution(alpha, units):
    draws = 20_000
    counts = dirichlet_counts(np.full(draws, 10**6), units, alpha, np.random.default_rng(0))
    shares = counts / 10**6
    assert (counts.sum(axis=0) == 10**6).all()
    variance = (1 / units) * (1 - 1 / units) / (units * alpha + 1)
    np.testing.assert_allclose(shares.mean(axis=1), 1 / units, atol=5 * (variance / draws) ** 0.5)
    np.testing.assert_allclose(shares.var(axis=1), variance, rtol=0.05)


@pytest.mark.parametrize("alpha", [1e-3, 1e6])
def test_dirichlet_counts_at_the_ends_of_alpha(alpha):
    counts = dirichlet_counts(np.array([0, 1, 500]), 50, alpha, np.random.default_rng(0))
    assert counts.sum(axis=0).tolist() == [0, 1, 500]
    assert counts.min() >= 0


def test_raise_to_minimum_takes_from_the_largest_its_richest_class():
    counts = np.array([[9, 3], [1, 0], [4, 5]])
    # The first client is the largest, 12 samples, when it gives two of its richest class.
    assert raise_to_minimum(counts, 3).tolist() == [[7, 3], [3, 0], [4, 5]]
    assert counts.tolist() == [[9, 3], [1, 0], [4, 5]]
    # Three from the first; now both givers have 9, and take turns from the lower index on.
    assert raise_to_minimum(counts, 7).sum(axis=1).tolist() == [7, 7, 8]
    with pytest.raises(ValueError, match="min_samples=8 for 3 clients takes 24 samples, got 22"):
        raise_to_minimum(counts, 8)


def test_raise_to_minimum_keeps_to_allowed_classes():
    counts = np.array([[9, 3], [0, 1]])
    allowed = np.array([[True, True], [False, True]])
    assert raise_to_minimum(counts, 3, allowed).tolist() == [[9, 1], [0, 3]]
    with pytest.raises(ValueError, match="no other client can spare"):
        raise_to_minimum(counts, 5, allowed)


# The partition as a value


def test_a_partition_is_a_sequence_of_clients(digits):
    made = partitions.two_stage_dirichlet(digits)
    assert len(made) == 40
    assert all(isinstance(data, ClientData) for data in made)
    assert sorted_clients(made) == made.clients
    assert made[3].client == "client-03"
    assert [data.client for data in made[38:]] == ["client-38", "client-39"]
    assert made.groups is not None
    assert [made.groups[data.client] for data in made] == [j // 10 for j in range(40)]
    assert repr(made) == (
        "Partition(two-stage-dirichlet of optdigits: 40 clients, 4 groups, 1797 samples, "
        "0 left out)"
    )
    assert made.left_out == {}


def test_names_sort_as_numbers():
    made = partitions.iid(balanced(120), clients=101)
    names = [data.client for data in made]
    assert names[:2] == ["client-000", "client-001"]
    assert names == sorted(names)
    assert made.groups is None
    assert "no groups" in repr(made)


def test_class_counts_and_indices_say_what_the_clients_hold():
    data = balanced(30)
    made = partitions.dirichlet(data, clients=7, seed=5)
    for row, client in zip(made.class_counts(), made, strict=True):
        rows = rows_of(client)
        assert row.tolist() == np.bincount(data.targets[rows], minlength=10).tolist()
        for view, samples in client.views.items():
            indices = made.indices[client.client][view]
            assert samples.inputs.ravel().tolist() == indices.tolist()
            assert samples.targets.tolist() == data.targets[indices].tolist()
    assert sorted(np.concatenate([rows_of(client) for client in made])) == list(range(300))


def test_split_into_training_and_test():
    made = partitions.iid(balanced(10), clients=4, test_fraction=0.25)
    assert [data.num_samples for data in made] == [{"train": 19, "test": 6}] * 4
    more = partitions.iid(balanced(10), clients=4, test_fraction=0.5)
    assert [data.num_samples for data in more] == [{"train": 13, "test": 12}] * 4
    none = partitions.iid(balanced(10), clients=4, test_fraction=0)
    assert [data.num_samples for data in none] == [{"train": 25}] * 4


def test_a_client_with_one_sample_trains_on_it_and_has_no_test_view():
    made = partitions.iid(balanced(1), clients=7, min_samples=1)
    assert [data.num_samples for data in made] == [{"train": 1, "test": 1}] * 3 + [{"train": 1}] * 4


def test_cap_leaves_the_rest_out_with_the_reason():
    data = balanced(100)
    made = partitions.two_stage_dirichlet(data, clients=8, samples_per_client=40, seed=1)
    assert made.left_out == {"over samples_per_client": 1000 - made.num_samples}
    sizes = [sum(client.num_samples.values()) for client in made]
    whole = partitions.two_stage_dirichlet(data, clients=8, seed=1)
    assert sizes == [min(40, sum(client.num_samples.values())) for client in whole]
    for capped, client in zip(made, whole, strict=True):
        assert set(rows_of(capped)) <= set(rows_of(client))


def test_kept_samples_are_drawn_from_all_of_a_client():
    made = partitions.iid(balanced(1000), clients=1, samples_per_client=1000)
    spread = np.sqrt(1000 * 0.1 * 0.9)
    assert np.abs(made.class_counts()[0] - 100).max() < 4 * spread


ALL = [
    ("two-stage-dirichlet", {}),
    ("dirichlet", {}),
    ("n-class", {}),
    ("cluster-n-class", {}),
    ("rotated", {}),
    ("iid", {}),
]


@pytest.mark.parametrize(("name", "config"), ALL)
def test_the_seed_fixes_everything_and_matters(digits, name, config):
    def held(seed):
        made = partitions.build(name, digits, {**config, "clients": 20, "seed": seed})
        return {c: {v: i.tolist() for v, i in views.items()} for c, views in made.indices.items()}

    first = held(1)
    np.random.default_rng().random()
    assert held(1) == first
    assert held(2) != first


@pytest.mark.parametrize(("name", "config"), ALL)
def test_default_sizes_on_the_digits(digits, name, config):
    made = partitions.build(name, digits, config)
    assert len(made) == 40
    assert made.num_samples == 1797
    assert min(sum(data.num_samples.values()) for data in made) >= 8
    assert all(data.num_samples["test"] >= 2 for data in made)


# Label skew


def test_two_stage_dirichlet_makes_groups_that_differ_and_clients_that_do_not():
    made = partitions.two_stage_dirichlet(balanced(700), clients=40, seed=2)
    shares = made.class_counts() / made.class_counts().sum(axis=1, keepdims=True)
    distance = np.abs(shares[:, None] - shares[None]).sum(axis=2) / 2
    group = np.repeat(range(4), 10)
    same = group[:, None] == group[None]
    assert distance[same].max() < distance[~same].min()


def two_stage_restated(random):
    """Shares that aren't rounded, of 10 groups of 20 clients and ten classes of 700."""
    while True:
        groups = np.array([random.dirichlet([0.1] * 10) for _ in range(10)]) * 700
        if groups.sum(axis=0).min() > 0.3 * 700:
            break
    clients = [[random.dirichlet([10] * 20) * groups[c, g] for c in range(10)] for g in range(10)]
    return np.concatenate([np.transpose(of_group) for of_group in clients])


def size_statistics(counts):
    sizes = counts.sum(axis=1)
    return [np.median(sizes), sizes.std(), (counts > 0.03 * sizes[:, None]).sum(axis=1).mean()]


def test_two_stage_dirichlet_has_the_statistics_of_a_plain_restatement():
    data, draws = balanced(700), 40
    ours = [
        size_statistics(
            partitions.two_stage_dirichlet(data, groups=10, clients=200, seed=s).class_counts()
        )
        for s in range(draws)
    ]
    random = np.random.default_rng(0)
    theirs = [size_statistics(two_stage_restated(random)) for _ in range(draws)]
    error = np.sqrt((np.var(ours, axis=0) + np.var(theirs, axis=0)) / draws)
    assert (np.abs(np.mean(ours, axis=0) - np.mean(theirs, axis=0)) < 4 * error).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_group_gets_less_than_three_tenths_of_its_even_share(seed):
    counts = partitions.two_stage_dirichlet(balanced(50), groups=5, clients=10, seed=seed)
    by_group = counts.class_counts().reshape(5, 2, 10).sum(axis=(1, 2))
    assert by_group.min() >= 0.3 * 500 / 5


def test_groups_of_unequal_numbers_of_clients():
    made = partitions.two_stage_dirichlet(balanced(50), groups=3, clients=8)
    assert list(made.groups.values()) == [0, 0, 0, 1, 1, 1, 2, 2]


def test_repair_moves_samples_inside_a_group_only(digits):
    for seed in range(20):
        lax = partitions.two_stage_dirichlet(digits, seed=seed, min_samples=1, alpha=(1, 0.1))
        strict = partitions.two_stage_dirichlet(digits, seed=seed, min_samples=9, alpha=(1, 0.1))
        if (lax.class_counts().reshape(4, 10, 10).sum(axis=(1, 2)) >= 135).all():
            before = lax.class_counts().reshape(4, 10, 10).sum(axis=1)
            after = strict.class_counts().reshape(4, 10, 10).sum(axis=1)
            np.testing.assert_array_equal(before, after)
            assert strict.class_counts().sum(axis=1).min() >= 9
            assert lax.class_counts().sum(axis=1).min() < 9


def test_dirichlet_of_small_alpha_gives_clients_few_classes():
    few = partitions.dirichlet(balanced(200), clients=10, alpha=0.05).class_counts()
    many = partitions.dirichlet(balanced(200), clients=10, alpha=100).class_counts()
    assert (few > 0).sum() < 60
    assert (many > 0).all()


def test_more_clients_than_a_small_alpha_fills_ends_and_leaves_none_empty():
    made = partitions.dirichlet(balanced(40), clients=100, alpha=0.001, min_samples=4)
    assert made.class_counts().sum(axis=1).tolist() == [4] * 100


def test_a_class_without_samples_is_no_trouble():
    data = labelled(np.repeat([0, 1, 3], 60), classes=5)
    for name, _ in ALL:
        if name != "rotated":
            config = {"clients": 6} | ({"classes": (2, 1)} if name == "cluster-n-class" else {})
            config |= {"groups": 2} if name in ("two-stage-dirichlet", "cluster-n-class") else {}
            counts = partitions.build(name, data, config).class_counts()
            assert counts.sum(axis=0).tolist() == [60, 60, 0, 60, 0]


# Sets of classes


def test_class_sets_are_balanced():
    random = np.random.default_rng(0)
    usable = np.ones(10, dtype=bool)
    for _ in range(20):
        holds = draw_class_sets(10, 3, usable, random)
        assert holds.sum(axis=1).tolist() == [3] * 10
        assert holds.sum(axis=0).tolist() == [3] * 10
        assert sorted(draw_class_sets(20, 2, usable[:3], random).sum(axis=0)) == [13, 13, 14]
    assert draw_class_sets(3, 10, usable, random).all()


def test_class_sets_differ_between_draws_and_pair_all_classes():
    pairs = set()
    for seed in range(60):
        holds = draw_class_sets(5, 2, np.ones(5, dtype=bool), np.random.default_rng(seed))
        pairs |= {tuple(np.flatnonzero(row).tolist()) for row in holds}
    assert len(pairs) == 10


def test_n_class_divides_a_class_evenly_among_those_who_drew_it():
    counts = partitions.n_class(balanced(2000, classes=3), clients=20).class_counts()
    assert ((counts > 0).sum(axis=1) == 2).all()
    column = counts[:, (counts > 0).sum(axis=0).tolist().index(13)]
    assert sorted(column[column > 0].tolist()) == [153] * 2 + [154] * 11


def test_cluster_n_class_holds_classes_by_group_then_client(digits):
    made = partitions.cluster_n_class(digits, groups=5, clients=20, classes=(4, 2), seed=3)
    held = made.class_counts() > 0
    assert (held.sum(axis=1) == 2).all()
    by_group = held.reshape(5, 4, 10).any(axis=1)
    assert (by_group.sum(axis=1) == 4).all()
    assert len(np.unique(by_group, axis=0)) == 5
    assert made.num_samples == 1797


def test_classes_that_nobody_can_draw_are_refused_or_reported():
    with pytest.raises(ValueError, match="clients=4 with classes_per_client=2 can hold 8 of 10"):
        partitions.n_class(balanced(50), clients=4)
    made = partitions.n_class(balanced(50), clients=4, drop_unused=True)
    assert made.left_out == {"that no client drew": 100}
    assert sorted(made.class_counts().sum(axis=0)) == [0, 0] + [50] * 8
    with pytest.raises(ValueError, match=r"groups=3 with classes=\(3, 2\) can hold 9 of 10"):
        partitions.cluster_n_class(balanced(50), groups=3)
    with pytest.raises(ValueError, match="1 clients of a group"):
        partitions.cluster_n_class(balanced(50), groups=4, clients=4)


def test_n_class_repairs_within_the_classes_of_a_client():
    data = labelled(np.repeat([0, 1, 2, 3], [400, 400, 400, 5]))
    made = partitions.n_class(data, clients=8, classes_per_client=2, min_samples=20)
    counts = made.class_counts()
    assert (counts > 0).sum(axis=1).max() <= 2
    assert counts.sum(axis=1).min() >= 20
    lonely = labelled(np.repeat([0, 1], [400, 5]))
    with pytest.raises(ValueError, match="min_samples=20 can't be reached"):
        partitions.n_class(lonely, clients=4, classes_per_client=1, min_samples=20)


# Rotation


def turned_by_hand(image, quarter_turns):
    for _ in range(quarter_turns):
        size = image.shape[-1]
        image = np.stack([image[..., :, size - 1 - i] for i in range(size)], axis=-2)
    return image


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_each_group_sees_its_own_turn(digits, groups):
    made = partitions.rotated(digits, groups=groups, clients=8, seed=1)
    assert sorted(set(made.groups.values())) == list(range(groups))
    for client in made:
        for view, samples in client.views.items():
            originals = digits.inputs[made.indices[client.client][view]]
            expected = turned_by_hand(originals, client.group * 4 // groups)
            np.testing.assert_array_equal(samples.inputs.numpy(), expected)
    assert made.num_samples == 1797


def test_half_turns_of_oblong_images():
    inputs = np.random.default_rng(0).random((40, 1, 4, 6)).astype(np.float32)
    oblong = Dataset("oblong", inputs, np.arange(40) % 2, 2)
    made = partitions.rotated(oblong, groups=2, clients=2)
    rows = made.indices["client-01"]["train"]
    np.testing.assert_array_equal(
        made[1].views["train"].inputs.numpy(), inputs[rows][..., ::-1, ::-1]
    )
    with pytest.raises(ValueError, match="square images"):
        partitions.rotated(oblong, groups=4, clients=4)


@pytest.mark.parametrize("groups", [3, 5, 8])
def test_turns_that_are_not_exact_are_refused(digits, groups):
    with pytest.raises(ValueError, match=f"1, 2 or 4 .* got {groups}"):
        partitions.rotated(digits, groups=groups)


def test_rows_of_numbers_cannot_be_turned():
    with pytest.raises(ValueError, match=r"images .* inputs of shape \(1,\)"):
        partitions.rotated(balanced(50))


def test_iid_parts_are_equal_and_alike():
    counts = partitions.iid(balanced(701), clients=20).class_counts()
    assert sorted(counts.sum(axis=1))[:10] == [350] * 10
    assert sorted(counts.sum(axis=1))[10:] == [351] * 10
    # Chi-squared with 9 * 19 degrees of freedom, within five standard deviations.
    expected = counts.sum(axis=1, keepdims=True) / 10
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert abs(statistic - 171) < 5 * np.sqrt(2 * 171)


# What is refused


@pytest.mark.parametrize("name", [name for name in partitions.PARTITIONS if name != "writers"])
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"clients": 0}, "clients must be a whole number of at least 1, got 0"),
        ({"clients": 2.5}, "clients must be a whole number"),
        ({"clients": 300}, "clients=300 with min_samples=8 take 2400 samples, .* has 1797"),
        ({"min_samples": 0}, "min_samples"),
        ({"min_samples": "few"}, "min_samples"),
        ({"test_fraction": 1.0}, "test_fraction must be at least 0 and below 1"),
        ({"test_fraction": "half"}, "test_fraction"),
        ({"test_fraction": float("nan")}, "test_fraction"),
        ({"samples_per_client": 5}, "samples_per_client must be at least min_samples=8, got 5"),
        ({"seed": 0.5}, "seed must be a whole number of at least 0, got 0.5"),
        ({"client": 4}, "has no option 'client'. Did you mean 'clients'"),
        ({"dataset": "optdigits"}, "has no option 'dataset'"),
    ],
)
def test_options_out_of_range(digits, name, config, message):
    with pytest.raises(ValueError, match=message):
        partitions.build(name, digits, config)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("two-stage-dirichlet", {"groups": 41}, "groups must be at most clients=40, got 41"),
        ("two-stage-dirichlet", {"groups": 0}, "groups must be a whole number"),
        ("two-stage-dirichlet", {"alpha": 0.1}, "alpha must be two numbers"),
        ("two-stage-dirichlet", {"alpha": [0.1, 0]}, "alpha must be a number, 0.001 to 1e"),
        ("two-stage-dirichlet", {"alpha": [0.1, float("nan")]}, "alpha"),
        ("two-stage-dirichlet", {"groups": 20, "alpha": [0.001, 1]}, "none of 1000 draws"),
        ("dirichlet", {"alpha": -1}, "alpha must be a number"),
        ("dirichlet", {"alpha": "low"}, "alpha must be a number"),
        ("n-class", {"classes_per_client": 11}, "classes_per_client .* 1 to 10, got 11"),
        ("n-class", {"classes_per_client": 1.5}, "classes_per_client"),
        ("cluster-n-class", {"classes": 3}, "classes must be two numbers"),
        ("cluster-n-class", {"classes": [3, 4]}, r"classes\[1\] must be .* 1 to 3, got 4"),
        ("cluster-n-class", {"classes": [10, 2]}, "there are 1 sets of 10"),
    ],
)
def test_arguments_out_of_range(digits, name, config, message):
    with pytest.raises(ValueError, match=message):
        partitions.build(name, digits, config)


def test_an_unknown_partition_gets_the_nearest(digits):
    with pytest.raises(ValueError, match=r"unknown partition 'rotate'\. Did you mean 'rotated'\?"):
        partitions.build("rotate", digits, {})


def test_an_unknown_option_of_a_function_is_refused(digits):
    with pytest.raises(TypeError, match="test_frction"):
        partitions.iid(digits, test_frction=0.5)
