"""FedWeIT: masked uploads, the mean over masks and attention against numbers by hand and numpy.

In the examples each column of a weight has a mask; here outputs are rows.
"""

import numpy as np
import pytest
import torch
from torch import nn

import bcfl
from bcfl.aggregation.partial_upload import imputed_means
from bcfl.architecture.decomposition import ADAPTIVE, OWN, SHARED, layers
from bcfl.architecture.fedweit import KNOWLEDGE, MaskedUpload, knowledge_of, num_slots, transferring
from bcfl.executors.batches import training_batches
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies.baselines.apd import APD
from bcfl.policies.baselines.fedweit import FedWeIT
from bcfl.protocol.adaptive_terms import Sparsity
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Train
from bcfl.rounds.ledger import Ledger
from bcfl.runtime.seeds import derive_seed
from experiments.models import linear

FIRST = ((1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0))
SECOND = ((2.0, 0.5, 1.0, -1.0), (1.0, 1.0, -2.0, 3.0))
MASKS = ((0.9, -0.1, 0.4, -0.6), (0.75, 0.2, -0.7, 0.3))
ADAPTIVES = ((0.2, 0.0, -0.0005, 0.0), (0.0, 0.1, 0.0, 0.3))
OTHERS = (
    ((0.1, 0.0, 0.0, 0.0), (0.0, 0.0, 0.4, 0.0)),
    ((0.0, 0.2, 0.0, 0.0), (0.0, 0.0, 0.0, -0.5)),
)
ATTENTION = (0.5, -0.25)
RESTORED = (
    (1.316424, -0.05, 0.598188, 1.417375),
    (2.132849, 0.1, -0.997375, 3.259750),
)
AVERAGED = ((1.5, 0.0, 1.0, 4.0), (3.0, 0.0, -2.0, 8.0))


@pytest.fixture(scope="module")
def model():
    return transferring(linear(2, 4, bias=False), slots=2)


def names(model):
    return {slot.name.rsplit(".", 1)[-1]: slot for slot in model.layout.parameters}


def flat(model, shared, masks, adaptive=ADAPTIVES, attention=(0.0, 0.0)):
    """Parameters of the one layer."""
    parameters = torch.ones(model.layout.num_parameters, dtype=torch.float64)
    parts = {
        "original0": np.transpose(shared),
        "original1": masks,
        "original2": np.transpose(adaptive),
        "original3": attention,
    }
    for name, values in parts.items():
        slot = names(model)[name]
        parameters[slot.start : slot.stop] = torch.tensor(np.array(values).reshape(-1))
    return parameters


def shared_of(model, parameters):
    slot = names(model)["original0"]
    return parameters[slot.start : slot.stop].reshape(4, 2).T.numpy()


def test_outputs_with_strong_masks_are_sent(model):
    upload = MaskedUpload(0.3)
    for masks, kept in zip(MASKS, ([1, 0, 0, 1], [1, 0, 1, 0]), strict=True):
        sent = upload.sent(model, flat(model, FIRST, masks))
        assert shared_of(model, sent).tolist() == [kept, kept]
        slot = names(model)["original2"]
        adaptive = sent[slot.start : slot.stop].reshape(4, 2).T
        assert adaptive.tolist() == (np.abs(ADAPTIVES) > 1e-3).tolist()
        assert not sent[names(model)["original1"].start : names(model)["original1"].stop].any()
    assert shared_of(model, MaskedUpload(0.0).sent(model, flat(model, FIRST, MASKS[0]))).all()


@pytest.mark.parametrize(("before", "left"), [((0.0, 0.0), (0.0, 0.0)), ((2.0, 6.0), (2.0, 6.0))])
def test_the_shared_weights_are_the_mean_over_those_that_send_them(model, before, left):
    """Parameters that no client sends keep their values."""
    upload, replies = MaskedUpload(0.3), []
    for shared, masks in zip((FIRST, SECOND), MASKS, strict=True):
        mean = flat(model, shared, masks)
        sent = upload.sent(model, mean)
        buffers = torch.zeros(model.layout.num_buffers, dtype=torch.float64)
        replies.append(
            (
                Trained(
                    mean=mean,
                    buffers=buffers,
                    curvature=torch.tensor(1.0),
                    num_samples=9,
                    sent=sent,
                ),
                1.0,
            )
        )
    origin = np.zeros((2, 4))
    origin[:, 1] = before
    start = from_initial(model, "start", flat(model, origin, MASKS[0]), replies[0][0].buffers, 1.0)
    seen = imputed_means(model, start.blocks[0], replies)
    expected = np.array(AVERAGED)
    expected[:, 1] = left
    averaged = torch.stack(seen).mean(dim=0).reshape(4, 2).T
    np.testing.assert_allclose(averaged, expected, atol=1e-12)
    adaptive = imputed_means(model, start.blocks[1], replies)
    assert torch.equal(adaptive[0], model.split(*_parts(replies[0][0]))[ADAPTIVE][0])


def _parts(reply):
    return reply.mean, reply.buffers


def test_weights_draw_on_others_by_attention(model):
    parameters = flat(model, AVERAGED, MASKS[0], attention=ATTENTION)
    others = [flat(model, FIRST, MASKS[0], adaptive) for adaptive in OTHERS]
    others[0][names(model)["original2"].start + 1] = 9e-4  # small entries are left out
    buffers = torch.zeros(model.layout.num_buffers, dtype=torch.float64)
    module = model.module().double()
    nn.utils.vector_to_parameters(parameters, module.parameters())
    (buffer,) = module.buffers()
    buffer.copy_(knowledge_of(model, others, buffers, 1e-3).view(buffer.shape))
    weight = module(torch.eye(2, dtype=torch.float64)).detach()
    np.testing.assert_allclose(weight, RESTORED, atol=1e-6)
    assert num_slots(model) == 2


def test_the_ledger_counts_what_is_sent(model):
    """8 of 16 shared numbers in all, a byte for the masks, adaptive entries with their places."""
    upload, up = MaskedUpload(0.3), 0
    objective = Objective(phases=((SHARED, ADAPTIVE, OWN),), upload=upload)
    for shared, masks in zip((FIRST, SECOND), MASKS, strict=True):
        mean = flat(model, shared, masks)
        ledger = Ledger.of(model)
        buffers = torch.zeros(model.layout.num_buffers)
        reply = Trained(
            mean=mean,
            buffers=buffers,
            curvature=torch.tensor(1.0),
            num_samples=9,
            sent=upload.sent(model, mean),
        )
        ledger.receive(Train("a", "k", objective), model, reply)
        up += ledger.bytes_up
    assert up == 4 * 8 + 2 * (1 + 8 + 2 * 4 * 3)
    ledger = Ledger.of(model)
    start = from_initial(model, "start", mean, torch.zeros(model.layout.num_buffers), 1.0)
    ledger.send(Train("a", start.key, objective), {start.key: start})
    assert ledger.bytes_down == 4 * (8 + 1)  # the shared weights, and the gain of no knowledge


def arrays(data, step):
    view = data.views["train:1" if step else "train"]
    return view.inputs.numpy(), view.targets.numpy()


def parts_of(model, mean):
    slots = {s.name.rsplit(".", 1)[-1]: s for s in model.layout.parameters}
    order = ("original0", "original1", "original2", "original3", "bias")
    vector = mean.numpy()
    return [vector[slots[n].start : slots[n].stop].reshape(slots[n].shape).copy() for n in order]


class Restated:
    """Rounds of FedWeIT for softmax regression, client by client."""

    def __init__(self, softmax, start, clients, knowledge):
        self.softmax, self.clients, self.shared = softmax, clients, start[0]
        self.own = {data.client: start[1:] for data in clients}
        self.knowledge, self.frozen = knowledge, {data.client: [] for data in clients}

    def begin(self, round):
        for row, (client, (mask, adaptive, _, _)) in enumerate(sorted(self.own.items())):
            gate = 1 / (1 + np.exp(-mask))
            self.frozen[client].append((self.shared, gate))
            self.knowledge[row] = np.where(np.abs(adaptive) > 1e-3, adaptive, 0)
        for client, (mask, _, attention, offset) in self.own.items():
            random = torch.Generator().manual_seed(derive_seed(5, round, client, "masks"))
            fresh = (torch.randn(*mask.shape, generator=random) / len(mask) ** 0.5).double().numpy()
            self.own[client] = [fresh, self.shared / 3, 0 * attention, 0 * offset]

    def round(self, number, step, rate, sparse, retention):
        total, senders = np.zeros_like(self.shared), np.zeros_like(self.shared)
        for data in self.clients:
            inputs, labels = arrays(data, step)
            batches = training_batches(len(labels), 10, 4, 5, number, data.client).numpy()
            values = [self.shared, *self.own[data.client]]
            for batch in batches:
                slopes = self.slopes(values, inputs[batch], labels[batch])
                for before, gate in self.frozen[data.client]:
                    slopes[0] = slopes[0] + retention * gate**2 * (values[0] - before)
                values = [v - rate * s for v, s in zip(values, slopes, strict=True)]
                size = np.abs(values[2])
                values[2] = np.sign(values[2]) * np.maximum(size - rate * sparse, 0)
            weight, *self.own[data.client] = values
            size = np.abs(self.own[data.client][0])
            sent = np.broadcast_to(size > np.sort(size, axis=0)[int(0.3 * len(size))], weight.shape)
            total, senders = total + sent * weight, senders + sent
        self.shared = np.where(senders > 0, total / np.maximum(senders, 1), self.shared)

    def slopes(self, values, inputs, labels):
        weight, mask, adaptive, attention, offset = values
        gate = 1 / (1 + np.exp(-mask))
        whole = weight * gate + adaptive + np.tensordot(attention, self.knowledge, 1)
        ones = np.column_stack([inputs, np.ones(len(inputs))])
        excess = self.softmax.probabilities(np.column_stack([whole, offset]), ones)
        excess[np.arange(len(labels)), labels] -= 1
        slope = excess.T @ ones / len(labels)
        by_weight = slope[:, :-1]
        return [
            by_weight * gate,
            (by_weight * weight).sum(axis=1, keepdims=True) * gate * (1 - gate),
            by_weight,
            (self.knowledge * by_weight).sum(axis=(1, 2)),
            slope[:, -1],
        ]


def test_rounds_against_numpy(turned_clients, states_of, softmax):
    """Two time steps of two rounds, three clients, whose knowledge has one slot to spare."""
    rate, sparse, retention = 0.1, 0.01, 0.7
    upload = MaskedUpload(0.3)
    objective = Objective(
        local_steps=4,
        batch_size=10,
        learning_rate=rate,
        momentum=0.0,
        curvature="uniform",
        regularizers=(Sparsity(sparse),),
        phases=((SHARED, ADAPTIVE, OWN),),
        upload=upload,
    )
    later = turned_clients((25, 12, 30), seed=1)
    clients = [
        bcfl.ClientData(old.client, {**old.views, "train:1": new.views["train"]}, old.group)
        for old, new in zip(turned_clients((20, 33, 12)), later, strict=True)
    ]
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        bcfl.Method(
            policy=FedWeIT(APD(objective, retention)),
            common_start=True,
            architecture=lambda model: transferring(model, 4),
        ),
        seed=5,
        device="cpu",
        dtype=torch.float64,
    )
    model = one.model
    start = parts_of(model, one.initial_state().hypotheses.best.clusters[0].mean(model))
    (layer,) = layers(model)
    restated = Restated(softmax, start, clients, np.zeros((4, *layer.shared.shape)))
    for round, (state, record) in enumerate(states_of(one, 4)):
        if round == 2:
            restated.begin(round)
        restated.round(round, round // 2, rate, sparse, retention)
        best = state.hypotheses.best
        for client, expected in restated.own.items():
            ours = best.clusters[best.association.label(client)]
            for mine, theirs in zip(
                parts_of(model, ours.mean(model)), (restated.shared, *expected), strict=True
            ):
                np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-11)
            known = ours.buffers(model).reshape(4, *layer.shared.shape)
            np.testing.assert_allclose(known, restated.knowledge, rtol=0, atol=1e-11)
        assert record.ledger.bytes_up < 3 * 4 * 12 * 3
    assert restated.knowledge[:3].any()
    assert any(attention.any() for _, _, attention, _ in restated.own.values())
    assert len({cluster.blocks[3].key for cluster in best.clusters}) == 1
    assert [spec.name for spec in model.blocks][3] == KNOWLEDGE


def test_bad_numbers():
    with pytest.raises(ValueError, match=r"sparsity must lie in \[0, 1\), got 1.0"):
        MaskedUpload(1.0)
    with pytest.raises(ValueError, match="least must be finite and at least 0, got -1"):
        MaskedUpload(least=-1)
    with pytest.raises(ValueError, match="least must be finite and at least 0, got -1"):
        FedWeIT(APD(Objective()), -1)
    with pytest.raises(ValueError, match="slots must be a whole number of at least 1, got 0"):
        transferring(linear(2, 2), 0)
    with pytest.raises(ValueError, match="model must have a single block to be decomposed"):
        transferring(transferring(linear(2, 2)))
