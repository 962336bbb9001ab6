"""Runs go on from a state or a run; states that do not fit are refused."""

import pytest
import torch
from torch import nn

from bcfl import Federation, Objective, checkpoint, methods
from bcfl.policies import FedAvg
from bcfl.rounds import OtherMethodWarning, SameStartWarning

ONE = FedAvg(Objective(local_steps=1, batch_size=4))


def test_a_state_of_other_clients_is_refused(linear, clients):
    state = Federation(clients, linear, ONE).run(1).state
    with pytest.raises(ValueError, match="state must be one of these clients"):
        Federation(clients[:3], linear, ONE).run(2, state=state)


def test_a_state_of_another_network_is_refused(linear, clients):
    state = Federation(clients, linear, ONE).run(1).state
    words = "state must be of models with 26 parameters, as the federation's network has, got 8"
    with pytest.raises(ValueError, match=words):
        Federation(clients, nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), ONE).run(
            2, state=state
        )


def test_rounds_already_done_are_not_done_again(linear, clients):
    federation = Federation(clients, linear, ONE)
    run = federation.run(3)
    again = federation.run(3, state=run.state)
    assert again.state is run.state
    assert again.records == ()
    assert federation.run(3, state=run).records == run.records
    with pytest.raises(ValueError, match="at least the 3 that state has done, got 2; they are the"):
        federation.run(2, state=run)


def test_a_run_that_is_continued_keeps_its_records(linear, clients):
    federation = Federation(clients, linear, ONE)
    first = federation.run(2, planned_rounds=4)
    whole = federation.run(4, state=first)
    assert [record.round for record in whole.records] == [1, 2, 3, 4]
    assert whole.records[:2] == first.records
    assert whole.metrics() == federation.run(4).metrics()


def test_another_tracker_goes_on_from_a_state_of_the_same_policy(linear, clients):
    state = Federation(clients, linear, methods.build("bcfl-g", num_clusters=2)).run(1).state
    exact = Federation(clients, linear, methods.build("bcfl-exact", num_clusters=2))
    with pytest.warns(OtherMethodWarning, match="a state of 'bcfl-g' goes on as 'bcfl-exact'"):
        assert exact.run(2, state=state).state.round == 2


@pytest.mark.parametrize("name", ["ifca", "bcfl-mht-8", "default", "faacl", "fedavg"])
def test_a_state_of_another_method_is_refused(linear, clients, name):
    state = Federation(clients, linear, methods.build("wecfl", num_clusters=2)).run(1).state
    other = Federation(clients, linear, methods.build(name))
    with pytest.raises(
        ValueError, match=f"of method '{other.method.name}' .* got .* 'wecfl' with 2 cl"
    ):
        other.run(2, state=state)


def test_a_state_of_another_policy_of_ones_own_names_it(linear, clients):
    class Other(FedAvg):
        pass

    state = Federation(clients, linear, ONE).run(1).state
    words = r"of method 'custom' \(Other with 1 cluster\), got .* \(FedAvg with 1 cluster\)"
    with pytest.raises(ValueError, match=words):
        Federation(clients, linear, Other(Objective())).run(2, state=state)


def test_a_state_of_another_number_of_clusters_is_refused(linear, clients, tmp_path):
    state = Federation(clients, linear, methods.build("ifca", num_clusters=2)).run(1).state
    other = Federation(clients, linear, methods.build("ifca", num_clusters=3))
    words = (
        "state must be of method 'ifca' with 3 clusters, got one of method 'ifca' with 2 clusters"
    )
    with pytest.raises(ValueError, match=words):
        other.run(2, state=checkpoint.load(checkpoint.save(state, tmp_path)))


def test_a_state_of_another_dtype_is_refused(linear, clients):
    state = Federation(clients, linear, ONE).run(1).state
    doubles = Federation(clients, linear, ONE, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"state must be of torch\.float64, the"):
        doubles.run(2, state=state)


def test_a_state_of_another_seed_is_refused(linear, clients, tmp_path):
    state = Federation(clients, linear, ONE, seed=3).run(2).state
    other = Federation(clients, linear, ONE, seed=4)
    for kept in (state, checkpoint.load(checkpoint.save(state, tmp_path))):
        with pytest.raises(ValueError, match=r"state must be of seed 4, .* got one of seed 3"):
            other.run(3, state=kept)


@pytest.mark.parametrize("name", ["ifca", "default", "bcfl-mht-4"])
def test_several_clusters_of_one_module_begin_alike_with_a_warning(clients, name):
    method = methods.build(name, num_clusters=2)
    with pytest.warns(SameStartWarning, match=r"begins with \d networks .*; give a function"):
        Federation(clients, nn.Linear(3, 2), method)
    Federation(clients, lambda: nn.Linear(3, 2), method)


def test_a_function_that_sets_a_seed_is_told_so(clients):
    def network():
        torch.manual_seed(0)
        return nn.Linear(3, 2)

    with pytest.warns(SameStartWarning, match=r"'network' should neither call torch.manual_seed"):
        Federation(clients, network, methods.ifca(num_clusters=2))


@pytest.mark.parametrize("name", ["fedavg", "wecfl"])
def test_one_module_suits_methods_that_begin_at_one_network(clients, name):
    Federation(clients, nn.Linear(3, 2), methods.build(name))
