import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posteriors.gaussians.fusion import fuse, fuse_without
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior

RULES = ("precision_weighted", "exact", "literal", "normalised")


law = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def problems(draw):
    """A prior and local posteriors of magnitudes from 1e-3 to 1e5, some of them isotropic."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    parameters, count = draw(st.integers(1, 6)), draw(st.integers(1, 6))

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    def positive(*shape):
        exponents = torch.rand(shape, generator=generator, dtype=dtype) * 8 - 3
        return 10**exponents

    prior = DiagonalGaussian(normal(parameters), positive(*draw(shapes(parameters))))
    local = [
        LocalPosterior(
            mean=10 * normal(parameters),
            curvature=positive(*draw(shapes(parameters))),
            used=draw(st.sampled_from([None, prior])),
            num_samples=draw(st.integers(1, 1000)),
            weight=draw(st.sampled_from([1.0, 0.25, 0.0])),
        )
        for _ in range(count)
    ]
    return prior, local


def shapes(parameters):
    return st.sampled_from([(), (1,), (parameters,)])


def close(first, second):
    epsilon = torch.finfo(first.mean.dtype).eps
    scale = float(torch.maximum(first.mean.abs().max(), second.mean.abs().max()))
    torch.testing.assert_close(first.mean, second.mean, rtol=0, atol=64 * epsilon * scale + 1e-12)
    precisions = torch.broadcast_tensors(first.precision, second.precision)
    torch.testing.assert_close(*precisions, rtol=64 * epsilon, atol=0)


@law
@given(problems(), st.sampled_from(RULES), st.randoms(use_true_random=False))
def test_the_order_of_local_posteriors_does_not_matter(problem, rule, random):
    prior, local = problem
    shuffled = list(local)
    random.shuffle(shuffled)
    first, second = fuse(rule, prior, local), fuse(rule, prior, shuffled)
    close(first.posterior, second.posterior)
    assert first.num_floored == second.num_floored


@law
@given(problems(), st.sampled_from(RULES))
def test_shape_and_dtype_are_those_of_the_prior(problem, rule):
    prior, local = problem
    fused = fuse(rule, prior, local)
    assert fused.posterior.mean.shape == prior.mean.shape
    assert fused.posterior.mean.dtype == prior.mean.dtype
    assert 0 <= fused.outside_hull <= 1
    assert 0 <= fused.num_floored <= len(local) * prior.num_parameters


@law
@given(problems(), st.sampled_from(["precision_weighted", "literal", "normalised"]))
def test_weighted_means_stay_inside_the_hull(problem, rule):
    prior, local = problem
    assert fuse(rule, prior, local).outside_hull == 0


@law
@given(problems(), st.sampled_from(["precision_weighted", "exact"]))
def test_data_never_lower_the_precision(problem, rule):
    prior, local = problem
    assert bool((fuse(rule, prior, local).posterior.precision >= prior.precision).all())


@law
@given(problems())
def test_a_normalised_product_is_as_sharp_as_some_member(problem):
    prior, local = problem
    used = [(one.used or prior).precision + one.curvature for one in local if one.weight > 0]
    if used:
        members = torch.stack([one.expand(prior.num_parameters) for one in used]).double()
        precision = fuse("normalised", prior, local).posterior.precision.double()
        slack = 4 * torch.finfo(prior.mean.dtype).eps * members.max(0).values
        assert bool((precision <= members.max(0).values + slack).all())
        assert bool((precision >= members.min(0).values - slack).all())


@law
@given(problems(), st.integers(0, 6))
def test_exact_fusion_in_two_steps_is_fusion_in_one(problem, split):
    prior, local = problem
    named = [
        LocalPosterior(
            mean=one.mean,
            curvature=one.curvature,
            used=prior,
            num_samples=one.num_samples,
            weight=one.weight,
        )
        for one in local
    ]
    halfway = fuse("exact", prior, named[:split]).posterior
    in_steps = fuse("exact", halfway, named[split:]).posterior
    at_once = fuse("exact", prior, named).posterior
    close(in_steps, at_once)


@law
@given(problems())
def test_fusion_without_one_is_exact_fusion_of_the_others(problem):
    prior, local = problem
    named = [
        LocalPosterior(
            mean=one.mean,
            curvature=one.curvature,
            used=prior,
            num_samples=one.num_samples,
            weight=one.weight,
        )
        for one in local
    ]
    each = fuse_without("exact", prior, named, [(index,) for index in range(len(named))])
    for index, without in enumerate(each):
        others = fuse("exact", prior, named[:index] + named[index + 1 :]).posterior
        precisions = torch.broadcast_tensors(without.precision, others.precision)
        torch.testing.assert_close(without.mean, others.mean, rtol=1e-5, atol=1e-3)
        torch.testing.assert_close(*precisions, rtol=1e-5, atol=0)
