"""Predictions of labels, of which any number may be present, from the logits of each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from posteriors.predictive.predictive import Predictive


def absent_and_present(logits: Tensor) -> Tensor:
    """Logits (..., labels) as those of two classes for each label, (..., labels, 2).

    The softmax over the last axis is the probability that the label is absent, and that it is
    present: the sigmoid of the logit.
    """
    return torch.stack([torch.zeros_like(logits), logits], dim=-1)


@dataclass(frozen=True, eq=False)
class EachLabel:
    """The predictive of each label by itself, as one of two classes: absent, present.

    Labels depend on one another where the network is uncertain, since all come from one network;
    this leaves their joint distribution out.

    Attributes:
        logits: Predictive whose members' logits (members, samples, labels) are those of labels; its
            own `probabilities`, a softmax over labels, are not used.
        num_draws: Number of draws of `probabilities`.
        seed: Seed of these draws.
    """

    logits: Predictive
    num_draws: int = 64
    seed: int = 0

    def probabilities(self, inputs: Tensor) -> Tensor:
        """Probabilities of absence and presence averaged over draws, (samples, labels, 2)."""
        generator = torch.Generator().manual_seed(self.seed)
        return self.member_logits(inputs, self.num_draws, generator).softmax(-1).mean(0)

    def member_logits(self, inputs: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Those of absence and presence, (members, samples, labels, 2), float64."""
        return absent_and_present(self.logits.member_logits(inputs, count, generator))
