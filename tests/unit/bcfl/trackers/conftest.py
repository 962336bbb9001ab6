"""Hypotheses and candidates made by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import candidate
from bcfl.policies.policy import Costs
from bcfl.protocol.answers import Trained
from bcfl.trackers.successors import Successor


def cluster(model, key, centre, precision=1.0):
    """A posterior whose mean has `centre` in its first places and 0 elsewhere."""
    mean = torch.zeros(model.layout.num_parameters, dtype=torch.float64)
    mean[: len(np.atleast_1d(centre))] = torch.as_tensor(np.atleast_1d(centre))
    return from_initial(model, key, mean, torch.empty(0), precision)


@pytest.fixture
def cluster_at(linear):
    def of(key, centre, precision=1.0):
        return cluster(linear, key, centre, precision)

    return of


@pytest.fixture
def hypothesis_at(cluster_at):
    """A hypothesis with clusters at given places; its keys begin with `name`."""

    def of(name, centres, labels, weight=1.0, **fields):
        clients = tuple("abcdefgh"[: len(labels)])
        clusters = tuple(cluster_at(f"{name}{i}", centre) for i, centre in enumerate(centres))
        association = Association(clients, np.array(labels), len(centres))
        return Hypothesis(
            clusters=clusters, association=association, log_weight=math.log(weight), **fields
        )

    return of


@pytest.fixture
def chosen_with():
    """A ranked candidate that associates all but the absent clients, with hand-made costs."""

    def of(parent, labels, costs, absent=()):
        present = {c: label for c, label in labels.items() if c not in absent}
        made = candidate(parent, present, Objective())
        names = tuple(sorted(present))
        values = np.array([costs[name] for name in names], dtype=np.float64)
        return replace(made, costs=Costs(clients=names, values=values))

    return of


@pytest.fixture
def trained_at(linear):
    """Answers of trainings that ended at given places; others were not answered."""

    def of(chosen, places, curvature=1.0, samples=None):
        answers = {}
        for training in chosen.trainings:
            if training.client in places:
                mean = torch.zeros(linear.layout.num_parameters, dtype=torch.float64)
                place = np.atleast_1d(places[training.client])
                mean[: len(place)] = torch.as_tensor(place)
                count = 1 if samples is None else samples[training.client]
                bend = torch.full_like(mean, curvature)
                answers[training] = Trained(
                    mean=mean, buffers=torch.empty(0), curvature=bend, num_samples=count
                )
        return answers

    return of


@pytest.fixture
def successor_of():
    """A successor of a parent's position with a weight; nothing else matters."""

    def of(parent, log_weight):
        return Successor(None, parent, log_weight)

    return of
