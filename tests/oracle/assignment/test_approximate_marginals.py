"""Belief propagation and Gibbs sampling against exact counting."""

import numpy as np
import pytest

import assignment
from assignment.marginals.gibbs import effective_sample_size, potential_scale_reduction


@pytest.mark.parametrize("seed", range(4))
def test_gibbs_agrees_with_exact_counting(seed):
    cost = np.random.default_rng(seed).normal(scale=1.5, size=(9, 3))
    lower, upper = ([2, 1, 1], [4, 5, 5]) if seed % 2 else ([3, 3, 3], [3, 3, 3])
    exact = assignment.association_marginals(cost, lower, upper)
    drawn = assignment.association_marginals(cost, lower, upper, method="mcmc", rng=seed)
    assert drawn.converged
    assert drawn.effective_sample_size > 1000
    tolerance = 4.0 * 0.5 / np.sqrt(drawn.effective_sample_size)
    np.testing.assert_allclose(drawn.probabilities, exact.probabilities, atol=tolerance)
    np.testing.assert_allclose(drawn.co_association(), exact.co_association(), atol=tolerance)
    assert np.isnan(drawn.log_partition)
    assert np.isnan(drawn.entropy)
    sizes = np.stack([np.bincount(row, minlength=3) for row in drawn.sample(0, 200)])
    assert ((sizes >= lower) & (sizes <= upper)).all()


def test_gibbs_repeats_with_its_seed():
    cost = np.random.default_rng(0).normal(size=(6, 2))
    first, second, other = (
        assignment.association_marginals(cost, 2, 4, method="mcmc", rng=seed).probabilities
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_chains_that_cannot_meet_are_reported():
    """Two associations, equally probable, that differ by a rotation of three clients."""
    cost = np.full((3, 3), np.inf)
    cost[np.arange(3), np.arange(3)] = 0.0
    cost[np.arange(3), (np.arange(3) + 1) % 3] = 0.0
    exact = assignment.association_marginals(cost, 1, 1)
    np.testing.assert_allclose(exact.probabilities[np.isfinite(cost)], 0.5, atol=1e-12)
    assert not assignment.association_marginals(cost, 1, 1, method="mcmc").converged


def test_belief_propagation_is_close_where_sizes_have_slack():
    errors = []
    for seed in range(12):
        cost = np.random.default_rng(seed).normal(scale=1.5, size=(24, 3))
        exact = assignment.association_marginals(cost, 4, 14)
        beliefs = assignment.association_marginals(cost, 4, 14, method="bp")
        assert beliefs.converged
        errors.append(np.abs(beliefs.probabilities - exact.probabilities).max())
        np.testing.assert_allclose(beliefs.co_association(), exact.co_association(), atol=0.05)
        assert beliefs.log_partition == pytest.approx(exact.log_partition, abs=0.05)
    assert np.median(errors) < 1e-3


def test_belief_propagation_is_exact_where_one_cluster_is_bounded():
    """A single size factor leaves a tree."""
    cost = np.random.default_rng(2).normal(size=(7, 3)) - [2.0, 0.0, 0.0]
    exact = assignment.association_marginals(cost, upper=[4, 7, 7])
    beliefs = assignment.association_marginals(cost, upper=[4, 7, 7], method="bp")
    np.testing.assert_allclose(beliefs.probabilities, exact.probabilities, atol=1e-8)
    assert beliefs.log_partition == pytest.approx(exact.log_partition, abs=1e-8)
    assert beliefs.entropy == pytest.approx(exact.entropy, abs=1e-8)
    np.testing.assert_allclose(beliefs.co_association(), exact.co_association(), atol=0.05)


def test_belief_propagation_never_passes_silently_where_sizes_are_forced():
    cost = np.random.default_rng(0).normal(size=(6, 3))
    with pytest.warns(assignment.ForcedSizesWarning, match="forced"):
        assignment.association_marginals(cost, 2, 2, method="bp")
    with pytest.warns(assignment.ForcedSizesWarning, match="forced"):
        assignment.association_marginals(cost, [4, 0, 0], [4, 2, 2], method="bp")


def test_belief_propagation_follows_certain_clients_through_several_sizes():
    """Cluster 2 is closed, so clients 1 and 3 fill cluster 1, so client 2 must take cluster 0."""
    cost = [[-1500, 60, np.inf], [np.inf, -1000, 300], [500, -800, 560], [np.inf, -1400, np.inf]]
    with pytest.warns(assignment.ForcedSizesWarning):
        beliefs = assignment.association_marginals(cost, upper=[2, 2, 0], method="bp")
    assert beliefs.converged
    np.testing.assert_array_equal(beliefs.probabilities.argmax(axis=1), [0, 1, 0, 1])
    np.testing.assert_allclose(beliefs.probabilities.max(axis=1), 1.0)
    assert beliefs.co_association()[0, 2] == pytest.approx(1.0)
    assert beliefs.log_partition == pytest.approx(1500 + 1000 - 500 + 1400)


@pytest.mark.parametrize("method", ["bp", "mcmc"])
def test_infeasible_problems_are_detected(method):
    with pytest.raises(assignment.InfeasibleError):
        assignment.association_marginals([[0, np.inf]] * 3, upper=[2, 3], method=method)


def test_belief_propagation_has_no_samples():
    beliefs = assignment.association_marginals(np.zeros((3, 2)), upper=2, method="bp")
    with pytest.raises(ValueError, match="no joint distribution"):
        beliefs.sample(0, 5)


def test_effective_sample_size_of_an_autoregressive_chain():
    """An AR(1) process with coefficient a is worth (1 - a) / (1 + a) of its length."""
    rng = np.random.default_rng(0)
    chain = np.zeros((4000, 8, 1))
    for step in range(1, len(chain)):
        chain[step] = 0.6 * chain[step - 1] + rng.normal(size=(8, 1))
    expected = chain.size * 0.4 / 1.6
    assert effective_sample_size(chain) == pytest.approx(expected, rel=0.1)
    assert potential_scale_reduction(chain) == pytest.approx(1.0, abs=0.005)
    assert potential_scale_reduction(chain + np.arange(8)[:, None]) > 1.5


@pytest.mark.parametrize(
    ("seed", "coefficient", "shift", "size", "reduction"),
    [
        (0, 0.0, 0.0, 2188.3968814452073, 1.0001086017478937),
        (1, 0.5, 0.0, 950.0656079247682, 1.0033707896265212),
        (2, 0.9, 0.0, 93.45140029000598, 1.0484506139437177),
        (3, -0.4, 0.0, 5901.074466497613, 0.9990280244837135),
        (4, 0.5, 0.5, 27.03153102208385, 1.1124369459924945),
    ],
)
def test_diagnostics_are_those_of_arviz(seed, coefficient, shift, size, reduction):
    """`ess(method="mean")` and `rhat(method="split")` of arviz-stats 0.8.0 on the same chains.

    ArviZ adds the last even autocorrelation to its sum, at most 2 % here.
    """
    rng = np.random.default_rng(seed)
    chains = rng.normal(size=(600, 4))
    for step in range(1, len(chains)):
        chains[step] += coefficient * chains[step - 1]
    chains += shift * np.arange(4)
    assert effective_sample_size(chains[:, :, None]) == pytest.approx(size, rel=0.02)
    assert potential_scale_reduction(chains[:, :, None]) == pytest.approx(reduction, rel=1e-12)
