"""C-FAACL against a restatement with sets of devices, and numbers by hand.

The restatement writes down algorithms 8 to 11 with sets and dictionaries: mutual tests instead of
the undirected ones, the best match instead of the first, merges until nothing changes. Clusters
and models are told apart by names that the restatement gives.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import Association, Hypothesis, Model, Objective
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import RoundContext
from bcfl.policies.faacl.continual import ContinualFAACL
from bcfl.policies.faacl.faacl import FAACL
from bcfl.protocol.answers import Trained
from bcfl.protocol.driving import run_exchanges
from bcfl.protocol.requests import Train
from bcfl.protocol.statistics.support import SampleFit, SupportTest

DEVICES = tuple("abcdef")
MODEL = Model(
    name="tiny",
    build=lambda: nn.Linear(1, 1, bias=False),
    input_shape=(1,),
    num_outputs=1,
    likelihood="gaussian",
)
ALPHA = 0.1
ROUNDS_PER_STEP = 3


def noise(*words):
    seed = [sum(map(ord, str(word))) * 1000003 + len(str(word)) for word in words]
    return float(np.random.default_rng([*seed, *map(ord, "".join(map(str, words)))]).uniform())


class World:
    """Which concept each device sees and each model is of; p-values of all tests."""

    def __init__(self, seed):
        self.seed, self.concept_of = seed, {}
        random = np.random.default_rng(seed)
        self.plan = {device: random.integers(2, size=5).tolist() for device in DEVICES}

    def of_search(self, round, device, cluster, direction, step):
        """On new data only models of the concept do; of the past some are in doubt."""
        alike = self.concept_of[cluster] == self.plan[device][step]
        if direction == "new":
            return 0.0 if alike else 1.0
        return 0.15 * noise(self.seed, round, device, cluster)


class Restated:
    """Clusters in the order in which they came; each has a name, devices and a past."""

    def __init__(self, world, sets):
        self.world, self.rounds_left, self.step = world, 0, 0
        self.names = [f"0{min(one)}" for one in sets]
        self.devices = dict(zip(self.names, map(set, sets), strict=True))
        self.past = {name: set() for name in self.names}
        self.searched = {device: 0 for one in sets for device in one}
        for name, one in self.devices.items():
            world.concept_of[name] = world.plan[min(one)][0]

    def remembers(self, step):
        """At the start of a step, clusters and devices remember who was where."""
        for name, devices in self.devices.items():
            known = {entry for past in self.past.values() for entry in past}
            for device in devices:
                entry = (device, self.searched[device])
                if self.searched[device] < step and entry not in known:
                    self.past[name].add(entry)

    def match(self, round, device, names, step):
        found = []
        for name in names:
            tests = [self.world.of_search(round, device, name, way, step) for way in ("new", "old")]
            found.append((max(tests), name))
        good = [one for one in found if one[0] <= ALPHA]
        return min(good, key=lambda one: one[0])[1] if good else None

    def holders(self, name, present, device):
        mine = {(d, t) for d, t in self.past[name] if d in present and d != device}
        newest = max((t for _, t in mine), default=None)
        return {(d, t) for d, t in mine if t == newest}

    def search(self, round, present, step):
        self.remembers(step)
        found = {}
        for device in sorted(d for d in present if self.searched.get(d, -1) < step):
            own = [n for n in self.names if any(d == device for d, _ in self.past[n])]
            name = self.match(round, device, own, step)
            if name is None:
                others = [n for n in self.names if self.holders(n, present, device)]
                name = self.match(round, device, others, step)
            found[device] = name
        opened = [device for device, name in found.items() if name is None]
        for device, name in found.items():
            for devices in self.devices.values():
                devices.discard(device)
            self.searched[device] = step
            if name is None:
                continue
            self.devices[name].add(device)
        for device in opened:
            name = f"{step}{device}"
            self.names.append(name)
            self.devices[name], self.past[name] = {device}, set()
            self.world.concept_of[name] = self.world.plan[device][step]
        return found, opened

    def merge(self, present):
        """Clusters of one concept support each other; only present devices vote."""
        while True:
            used = [n for n in self.names if self.devices[n] & present]
            taken = set()
            for one in used:
                for other in used:
                    alike = self.world.concept_of[one] == self.world.concept_of[other]
                    if one != other and alike and not {one, other} & taken:
                        taken |= {one, other}
                        self.devices[one] |= self.devices.pop(other)
                        self.past[one] |= self.past.pop(other)
                        self.names.remove(other)
            if not taken:
                return

    def round(self, number, present, step):
        if step > self.step:
            self.rounds_left, self.step = 2, step
        found, opened = self.search(number, present, step)
        if opened:
            self.rounds_left = 2
        if self.rounds_left > 0:
            self.merge(present)
        self.rounds_left = max(self.rounds_left - 1, 0)
        return found, opened


class Driver:
    """Runs the policy with the answers of a world; models are told apart by their one parameter."""

    def __init__(self, world, policy):
        self.world, self.policy, self.numbers, self.unable = world, policy, {"start": 0.0}, set()
        start = from_initial(MODEL, "start", torch.zeros(1), torch.zeros(0), 1.0)
        self.hypothesis = Hypothesis(clusters=(start,), association=Association.unseen(DEVICES, 1))
        self.restated = None

    def number(self, name):
        return self.numbers.setdefault(name, float(len(self.numbers) + 1))

    def named(self, posterior):
        value = float(posterior.mean(MODEL))
        return next(name for name, number in self.numbers.items() if number == value)

    def sets(self):
        rows = [set() for _ in self.hypothesis.clusters]
        for device, label in zip(DEVICES, self.hypothesis.association.labels, strict=True):
            if label >= 0:
                rows[label].add(device)
        return rows

    def associate(self, round, present):
        counts, step = dict.fromkeys(present, 20), round // ROUNDS_PER_STEP
        held_out = {**counts, **dict.fromkeys(self.unable, 0)}
        context = RoundContext(
            round=round,
            participants=present,
            num_samples=counts,
            seed=3,
            model=MODEL,
            candidates_per_parent=1,
            num_validation=held_out,
            num_rounds=15,
            step=step,
            rounds_in_step=ROUNDS_PER_STEP,
        )
        self.models, self.witnesses, self.trained = {}, {}, set()

        def reply(exchange):
            self.models |= exchange.models
            return {r: self.answer(round, r, step) for r in exchange.requests}

        (candidate,) = run_exchanges(self.policy.associate(self.hypothesis, context), reply)
        return candidate

    def answer(self, round, request, step):
        if isinstance(request, Train):
            self.trained.add((request.client, request.objective.local_steps))
            mean = torch.tensor([self.number(f"own {request.client} {step}")])
            return Trained(
                mean=mean, buffers=torch.zeros(0), curvature=torch.tensor(20.0), num_samples=20
            )
        own, offered = (self.named(self.models[key]) for key in request.models)
        if request.view != "validation":
            device = offered.split()[1]
            past = (request.client, int(request.view.removeprefix("validation-memory:")))
            self.witnesses.setdefault((device, own), set()).add(past)
            p_value = self.world.of_search(round, device, own, "old", step)
            return SupportTest(p_value, 9, 9)
        alike = self.concept(own, step) == self.concept(offered, step)
        return SupportTest(0.0 if alike else 1.0, 9, 9)

    def concept(self, name, step):
        return (
            self.world.plan[name.split()[1]][step] if " " in name else self.world.concept_of[name]
        )

    def finish(self, candidate, names):
        made = tuple(
            from_initial(
                MODEL, f"{name} {id(candidate)}", torch.tensor([self.number(name)]), e, 1.0
            )
            for name, e in zip(names, [torch.zeros(0)] * len(names), strict=True)
        )
        self.hypothesis = Hypothesis(
            clusters=made,
            association=candidate.association,
            state=candidate.state,
            carried_models=candidate.carried_models,
        )


@pytest.mark.parametrize("seed", range(8))
def test_searches_new_concepts_and_merges(seed):
    """Five time steps of three rounds; in each round a device or two are absent."""
    world = World(seed)
    first = FAACL(objective=Objective(local_steps=4), cold_start=1, hierarchical=True)
    driver = Driver(world, ContinualFAACL(policy=first, own_rounds=6, merging_rounds=2))
    random = np.random.default_rng(seed + 100)
    for round in range(5 * ROUNDS_PER_STEP):
        step = round // ROUNDS_PER_STEP
        absent = random.choice(DEVICES, size=random.integers(3), replace=False) if step else ()
        present = tuple(d for d in DEVICES if d not in absent)
        before = driver.hypothesis
        candidate = driver.associate(round, present)
        if step == 0:
            names = [f"first {i}" for i in range(candidate.association.num_clusters)]
            driver.world.concept_of |= dict.fromkeys(names, 0)
            driver.concept = lambda name, step: 0  # all clusters support each other
            driver.finish(candidate, names)
            if round == ROUNDS_PER_STEP - 1:
                driver.restated = Restated(world, driver.sets())
                driver.finish(candidate, driver.restated.names)
                del driver.concept
            continue
        found, opened = driver.restated.round(round, set(present), step)
        names = driver.restated.names
        assert driver.trained == {(device, 24) for device in found}
        for (device, name), seen in driver.witnesses.items():
            allowed = driver_allowed(driver, before, device, name, present, step)
            assert seen <= allowed
        driver.finish(candidate, names)
        assert driver.sets() == [driver.restated.devices[name] for name in names]
        remembered = [set() for _ in names]
        for when, device, cluster in candidate.state["memories"]:
            remembered[cluster].add((device, when))
        assert remembered == [driver.restated.past[name] for name in names]
        for origin, name in zip(candidate.origins, names, strict=True):
            begun = driver.named(origin.posterior(before))
            new = {f"own {device} {step}" for device in opened}
            concept = world.concept_of[name]
            assert begun in new or begun in before_names(driver, before)
            assert Driver.concept(driver, begun, step) == concept
        for train in candidate.trainings:
            assert train.client in present


def before_names(driver, before):
    return {driver.named(posterior) for posterior in before.clusters}


def driver_allowed(driver, before, device, name, present, step):
    """Memories on which a cluster may be tested: the device's own, or others' newest."""
    past = {
        (who, when)
        for when, who, cluster in before.state.get("memories", [])
        if driver.named(before.clusters[cluster]) == name
    }
    labels = dict(zip(DEVICES, before.association.labels, strict=True))
    for who, when in before.state["searched"].items():
        here = labels[who] >= 0 and driver.named(before.clusters[labels[who]]) == name
        if (
            when < step
            and here
            and not any(w == when and d == who for w, d, _ in before.state.get("memories", []))
        ):
            past.add((who, when))
    mine = {one for one in past if one[0] == device}
    others = {one for one in past if one[0] != device and one[0] in present}
    newest = max((when for _, when in others), default=-1)
    return mine | {one for one in others if one[1] == newest}


def test_one_direction_alone_is_no_match():
    """On new data the device's model is no worse than the cluster's (p 1/32): that says nothing.

    Asked on data of the past, the cluster does not accept the device's model (p 31/32).
    """
    old = SampleFit.raw(np.array([0.31, 0.52, 0.18, 0.77, 0.46]))
    own = SampleFit.raw(np.array([0.28, 0.49, 0.25, 0.70, 0.40]))
    assert SupportTest.of(old, own, 0.3).p_value == pytest.approx(1 / 32)
    assert SupportTest.of(own, old, 0.3).p_value == pytest.approx(1 / 32)
    past_old = SampleFit.raw(np.array([0.22, 0.61, 0.35, 0.14, 0.58]))
    past_own = SampleFit.raw(np.array([0.90, 1.40, 0.88, 0.41, 1.21]))
    assert SupportTest.of(past_old, past_own, 0.3).p_value == pytest.approx(31 / 32)


def test_a_newcomer_that_cannot_be_tested_starts_alone_at_the_initial_model():
    """It comes with the second time step: in no test, with no supporter, fed by itself alone."""
    world = World(0)
    world.plan = dict.fromkeys(DEVICES, [0] * 5)
    first = FAACL(objective=Objective(local_steps=4), cold_start=1, hierarchical=True)
    driver = Driver(world, ContinualFAACL(policy=first, merging_rounds=2))
    driver.concept = lambda name, step: 0  # all clusters support each other
    for round in range(ROUNDS_PER_STEP):
        candidate = driver.associate(round, DEVICES[:5])
        names = [f"first {i}" for i in range(candidate.association.num_clusters)]
        world.concept_of |= dict.fromkeys(names, 0)
        driver.finish(candidate, names)
    driver.unable = {"f"}
    candidate = driver.associate(ROUNDS_PER_STEP, DEVICES)
    assert candidate.association.labels.tolist() == [0] * 5 + [1]
    assert driver.named(candidate.origins[1].posterior(driver.hypothesis)) == "start"
    assert candidate.state["supports"] == []
    fed = candidate.contribution_weights[:, 1] > 0
    assert [t.client for t, one in zip(candidate.trainings, fed, strict=True) if one] == ["f"]
    assert candidate.state["passes_left"] == 2


def test_options_of_the_search_are_checked():
    policy = FAACL(objective=Objective())
    for changes, message in (
        ({"memory_samples": 0}, "memory_samples must be a whole number of at least 1, got 0"),
        ({"own_rounds": 0}, "own_rounds must be a whole number of at least 1, got 0"),
        ({"merging_rounds": 0}, "merging_rounds must be a whole number of at least 1, got 0"),
        ({"own_start": "zero"}, "own_start must be 'initial' or 'cluster', got 'zero'"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(ContinualFAACL(policy=policy), **changes)
