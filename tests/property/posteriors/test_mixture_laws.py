import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posteriors.gaussians.divergence import kl
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.merge import merge, merge_by
from posteriors.networks.batchnorm import pool_running_statistics
from posteriors.predictive.entropy import split_by_group, split_entropy

law = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def mixtures(draw):
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    count, parameters = draw(st.integers(2, 5)), draw(st.integers(1, 5))
    offset = draw(st.sampled_from([0.0, 1000.0]))
    gaussians = [
        DiagonalGaussian(
            offset + torch.randn(parameters, generator=generator, dtype=torch.float64),
            10 ** (torch.rand(parameters, generator=generator, dtype=torch.float64) * 4 - 1),
        )
        for _ in range(count)
    ]
    log_weights = torch.randn(count, generator=generator, dtype=torch.float64) * 3
    return gaussians, log_weights


@law
@given(mixtures(), st.floats(-1e4, 1e4), st.randoms(use_true_random=False))
def test_merging_ignores_order_and_common_offsets(mixture, offset, random):
    gaussians, log_weights = mixture
    order = list(range(len(gaussians)))
    random.shuffle(order)
    merged = merge(gaussians, log_weights)
    again = merge([gaussians[i] for i in order], log_weights[order] + offset)
    torch.testing.assert_close(merged.mean, again.mean, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(merged.precision, again.precision, rtol=1e-7, atol=0)


@law
@given(mixtures())
def test_merging_adds_the_spread_of_the_means(mixture):
    gaussians, log_weights = mixture
    weights = log_weights.softmax(0)[:, None]
    within = (weights * torch.stack([one.variance for one in gaussians])).sum(0)
    assert bool((merge(gaussians, log_weights).variance >= within * (1 - 1e-12)).all())


def squared_wasserstein(first, second):
    spread = (first.variance.sqrt() - second.variance.sqrt()).square()
    return ((first.mean - second.mean).square() + spread).sum()


COSTS = {
    "moment_matched": kl,
    "reverse_kl": lambda component, candidate: kl(candidate, component),
    "wasserstein": squared_wasserstein,
}


@law
@given(mixtures(), st.sampled_from(sorted(COSTS)))
def test_the_merged_gaussian_is_the_nearest_of_its_kind(mixture, rule):
    """Each rule minimises the weighted sum of its own divergence from the components."""
    gaussians, log_weights = mixture
    weights = log_weights.softmax(0)

    def cost(candidate):
        terms = [COSTS[rule](one, candidate).sum() for one in gaussians]
        return float(sum(w * term for w, term in zip(weights, terms, strict=True)))

    merged = merge_by(rule, gaussians, log_weights)
    best = cost(merged)
    for scale, shift in ((1.1, 0.0), (0.9, 0.0), (1.0, 0.05), (1.0, -0.05)):
        assert cost(DiagonalGaussian(merged.mean + shift, merged.precision * scale)) > best


@law
@given(mixtures())
def test_the_divergence_is_zero_only_at_equality(mixture):
    first, second = mixture[0][:2]
    assert abs(float(kl(first, first))) < 1e-12
    assert float(kl(first, second)) > 0


@law
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0.1, 30))
def test_the_parts_of_the_entropy_add_up(seed, members, sharpness):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(members, 7, 4, generator=generator, dtype=torch.float64)
    split = split_entropy((sharpness * logits).softmax(-1))
    assert bool((split.mutual_information >= 0).all())
    assert bool((split.mutual_information <= torch.tensor(members).log() + 1e-12).all())
    torch.testing.assert_close(
        split.total, split.data + split.mutual_information, rtol=1e-9, atol=1e-12
    )


@law
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_grouping_shares_out_the_same_uncertainty(seed, sizes):
    generator = torch.Generator().manual_seed(seed)
    groups = [
        (3 * torch.randn(size, 7, 4, generator=generator, dtype=torch.float64)).softmax(-1)
        for size in sizes
    ]
    weights = torch.rand(len(sizes), generator=generator, dtype=torch.float64) + 0.01
    split = split_by_group(groups, weights)
    assert bool((split.model >= 0).all())
    assert bool((split.association >= 0).all())
    torch.testing.assert_close(
        split.total, split.data + split.model + split.association, rtol=1e-9, atol=1e-12
    )
    single = [w / size for w, size in zip(weights, sizes, strict=True) for _ in range(size)]
    whole = split_entropy(torch.cat(groups), torch.stack(single))
    torch.testing.assert_close(split.total, whole.total)
    torch.testing.assert_close(split.data, whole.data)


@law
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 5))
def test_pooling_in_two_steps_is_pooling_in_one(seed, first, second):
    generator = torch.Generator().manual_seed(seed)
    total = first + second
    means = torch.randn(total, 3, generator=generator, dtype=torch.float64)
    variances = torch.rand(total, 3, generator=generator, dtype=torch.float64)
    counts = torch.randint(1, 100, (total,), generator=generator).double()
    groups = (slice(0, first), slice(first, total))
    parts = [pool_running_statistics(means[g], variances[g], counts[g]) for g in groups]
    in_steps = pool_running_statistics(
        torch.stack([part[0] for part in parts]),
        torch.stack([part[1] for part in parts]),
        torch.stack([counts[g].sum() for g in groups]),
    )
    at_once = pool_running_statistics(means, variances, counts)
    torch.testing.assert_close(in_steps, at_once)
