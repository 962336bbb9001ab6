"""Suffixes of names: what they bring, in any order, and which do not go together."""

import itertools
import re

import pytest

from bcfl.architecture.additive import OWN, SHARED, additive
from bcfl.methods import COMBINATORS, UnknownMethodError, build, named
from bcfl.policies import KMeansAssociation, WarmUp
from bcfl.policies.wrappers.additive_warm_up import LocalFirst, SharedFirst
from bcfl.policies.wrappers.frozen import Frozen
from bcfl.policies.wrappers.partial import Partial
from bcfl.protocol.regularizers import Contrast, Proximal, Sharing
from tests.recipes import built


def kinds(objective):
    return [type(term) for term in objective.regularizers]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ifca", ("ifca", ())),
        ("ifca-con-cks", ("ifca", ("con-cks",))),
        ("ifca-cks-con-para", ("ifca", ("cks", "con-para"))),
        ("bcfl-mh-6-cam-finetune", ("bcfl-mh-6", ("cam", "finetune"))),
        ("faacl-h-finetune", ("faacl-h", ("finetune",))),
        ("fedavg-plus-finetune", ("fedavg-plus", ("finetune",))),
    ],
)
def test_a_name_is_a_base_and_suffixes(name, expected):
    found = named(name)
    base = found.recipe.name if found.number is None else f"{found.recipe.name}-{found.number}"
    assert (base, found.suffixes) == expected


@pytest.mark.parametrize(
    "suffixes", [("con-para", "cks", "cam", "finetune"), ("con-rep", "w", "finetune")]
)
def test_the_order_of_suffixes_does_not_matter(suffixes):
    names = ["wecfl-" + "-".join(order) for order in itertools.permutations(suffixes)]
    methods = [built(name, num_clusters=3) for name in names]
    assert [method.name for method in methods] == names
    for method in methods:
        assert method.policy == methods[0].policy
        assert method.finetuned == methods[0].finetuned is not None
        assert method.architecture is methods[0].architecture


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("wecfl-con-para-con-rep", "contrast"),
        ("wecfl-con-para-con-para", "contrast"),
        ("wecfl-con-cks-con-rep", "contrast"),
        ("ifca-cks-con-cks", "sharing"),
        ("ifca-cam-w", "warm-up"),
        ("ifca-w-cam", "warm-up"),
        ("ifca-cam-cam", "warm-up"),
        ("ifca-finetune-finetune", "fine-tuning"),
    ],
)
def test_what_is_asked_for_twice_is_refused(name, what):
    with pytest.raises(ValueError, match=f"method '{name}' asks for {what} twice"):
        build(name)


def test_a_suffix_alone_is_no_method():
    with pytest.raises(UnknownMethodError, match=r"unknown method 'wefcl-cam'.*'wecfl-cam'"):
        build("wefcl-cam")
    with pytest.raises(UnknownMethodError):
        build("-cam")


def test_only_suffixes_that_bring_the_same_are_named():
    with pytest.raises(ValueError, match=r"asks for warm-up twice: cam, w$"):
        build("ifca-cam-finetune-w")


def test_every_suffix_is_described_and_has_what_it_excludes():
    for combinator in COMBINATORS.values():
        assert combinator.description
        assert combinator.paper
        assert combinator.brings


@pytest.mark.parametrize(
    ("suffix", "regularizers"),
    [
        ("con-para", [Contrast]),
        ("con-rep", [Contrast]),
        ("cks", [Sharing]),
        ("con-cks", [Sharing, Contrast]),
    ],
)
def test_terms_come_after_a_warm_up(suffix, regularizers):
    settings = dict(
        num_clusters=3, weight=0.7, contrast_temperature=2.0, sharing=0.4, contrast_warm_up=5
    )
    policy = built(f"ifca-{suffix}", **settings).policy
    assert kinds(policy.objective) == regularizers
    plain = policy.first
    while isinstance(plain, WarmUp):
        plain = plain.first
    assert plain.objective.regularizers == ()
    for term in policy.objective.regularizers:
        if isinstance(term, Contrast):
            assert (term.weight, term.temperature) == (0.7, 2.0)
            assert term.sees == ("outputs" if suffix == "con-rep" else "parameters")
        else:
            assert term.weight == 0.4
    layers = {"cks": "all", "con-para": "all", "con-rep": "all"}.get(suffix)
    chosen = [term.part.layers for term in policy.objective.regularizers]
    assert chosen == ([layers] if layers else ["body", "classifier"])


def test_cam_trains_own_networks_first_where_k_means_pulls_them_to_its_centroids():
    method = build("fesem-cam", num_clusters=3, warm_up=7, pull=0.2)
    policy = method.policy
    assert method.architecture is additive
    assert isinstance(policy, LocalFirst)
    assert policy.rounds == 7
    assert policy.first.objective.phases == ((OWN,),)
    assert policy.first.objective.regularizers == ()
    assert isinstance(policy.policy, KMeansAssociation)
    assert policy.policy.weighting == "samples"
    assert policy.objective.curvature == "samples"
    (pull,) = policy.objective.regularizers
    assert isinstance(pull, Proximal)
    assert (pull.weight, pull.part.block, policy.policy.part.block) == (0.2, OWN, OWN)


def test_cam_trains_the_shared_network_first_where_clients_are_associated_by_loss():
    policy = build("ifca-cam", warm_up=7).policy
    assert isinstance(policy, SharedFirst)
    assert (policy.rounds, policy.alone.phases) == (7, ((SHARED,),))
    assert policy.objective.regularizers == ()


@pytest.mark.parametrize(
    ("update", "phases", "against"),
    [
        ("simultaneous", ((OWN,), (SHARED,)), "start"),
        ("alternating", ((OWN,), (SHARED,)), "updated"),
        ("joint", ((OWN, SHARED),), "start"),
    ],
)
def test_settings_say_how_cam_trains(update, phases, against):
    objective = build("ifca-cam", update=update).policy.objective
    assert (objective.phases, objective.against) == (phases, against)


def test_settings_say_how_cam_aggregates():
    assert isinstance(build("wecfl-cam", aggregation="partial").policy.policy, Partial)
    assert isinstance(build("wecfl-cam").policy.policy, KMeansAssociation)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"update": "both"}, "update of ifca-cam must be 'alternating' or .* 'both'"),
        ({"aggregation": "mean"}, "aggregation of ifca-cam must be 'cluster_mean' .*, got 'mean'"),
    ],
)
def test_settings_of_cam_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        build("ifca-cam", **settings)


def test_few_shot_clustering_by_setting():
    policy = build("wecfl-con-para", num_clusters=3, clustering_rounds=4).policy
    assert isinstance(policy.then, Frozen)
    assert policy.then.rounds == 4
    assert kinds(policy.objective) == [Contrast]


@pytest.mark.parametrize(
    ("name", "settings", "rounds"),
    [
        ("wecfl-con-rep", {}, [10]),
        ("wecfl-con-para-cks", {}, [10]),
        ("fesem-con-cks", {"clustering_rounds": 4}, [4]),
        ("fesem-cks", {"sharing_few_shots": None}, []),
        ("ifca-cks", {}, []),
        ("wecfl", {}, []),
    ],
)
def test_chapters_4_to_6_cluster_in_the_first_rounds_alone(name, settings, rounds):
    policy, found = build(name, **settings).policy, []
    while policy is not None:
        found += [policy.rounds] if isinstance(policy, Frozen) else []
        policy = getattr(policy, "then", None) or getattr(policy, "policy", None)
    assert found == rounds


def test_finetuning_is_plain_training():
    method = build("fedprox-finetune")
    assert kinds(method.policy.objective) == [Proximal]
    assert method.finetuned.regularizers == ()
    assert build("fedprox").finetuned is None


def test_the_default_is_the_racing_tracker_with_the_suffixes_that_are_asked_for():
    assert build("default").name == "bcfl-race-4"
    assert build("default", num_clusters=3) == build("bcfl-race-4", num_clusters=3)
    assert build("default-cam").name == "bcfl-race-4-cam"


def test_a_misspelt_default_is_suggested():
    with pytest.raises(UnknownMethodError, match="Did you mean 'default'"):
        build("defualt")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ifca-3", "Did you mean 'ifca' with num_clusters=3?"),
        ("ifca-3-cam", "Did you mean 'ifca-cam' with num_clusters=3?"),
        ("fedavg-3", "Did you mean 'fedavg'?"),
        ("default-6", "Did you mean 'bcfl-race-6'?"),
    ],
)
def test_a_number_that_a_name_does_not_take_is_an_option(name, hint):
    with pytest.raises(UnknownMethodError, match=re.escape(hint)):
        build(name)


def test_methods_joined_by_a_plus_sign_are_an_ensemble():
    found = named("fedavg-finetune+ifca-finetune")
    assert [part.name for part in found.parts] == ["fedavg-finetune", "ifca-finetune"]
    assert "num_clusters" in found.options
    method = build("fedprox+wecfl", num_clusters=3, proximal=0.5)
    assert method.name == "fedprox+wecfl"
    assert [policy.num_clusters for policy in method.policy.policies] == [1, 3]
    assert method.num_clusters == 4
    assert (method.pooling, method.finetuned) == ("logits", None)
    assert kinds(method.policy.objective) == [Proximal]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fedavg+ifca-finetune", "must have -finetune in all of its parts, or in none"),
        ("fedavg+bcfl-mh-3", "must join methods with one hypothesis.*got 'bcfl-mh-3'"),
        ("fedavg+ifca-cam", "must join methods with one hypothesis.*got 'ifca-cam'"),
        ("fedavg+icfa", "unknown method 'icfa'. Did you mean 'ifca'"),
    ],
)
def test_ensembles_that_do_not_fit(name, message):
    with pytest.raises(ValueError, match=message):
        build(name)


def test_members_of_an_ensemble_do_not_score_by_cavities():
    with pytest.raises(ValueError, match=r"must join methods .* no "):
        build("fedavg+ifca", scored_by="cavity")


def test_options_of_an_ensemble_are_those_of_its_parts():
    with pytest.raises(ValueError, match="has no option 'proximal'"):
        build("fedavg+ifca", proximal=1.0)
