"""Recurrent networks for sequences of words."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from bcfl import Model
from bcfl.runtime import check_whole

FEATURES = 300
"""Of the vector of a word."""


def bilstm(
    classes: int = 2, input_shape: tuple[int, ...] = (25, FEATURES), words: int = 10_000
) -> Model:
    """Two bidirectional LSTMs (64, then 32 units a direction), a layer of 64, dropout of 0.5.

    The second LSTM gives the last state of each direction.

    Args:
        classes: number of classes.
        input_shape: (length, features) of sequences of word vectors, such as those of
            `sent140-glove`, also as (1, length, features); or (length,) of word numbers, which an
            embedding turns into vectors of 300 numbers.
        words: word numbers are below this; only for the embedding.

    Raises:
        ValueError: a size is below 1, or `input_shape` has another number of axes.

    References:
        FAACL thesis, appendix B.3, for Sent140: sequences of 25 vectors of 300 numbers.
    """
    shape = tuple(input_shape) if isinstance(input_shape, list | tuple) else ()
    if len(shape) not in (1, 2) and not (len(shape) == 3 and shape[0] == 1):
        raise ValueError(
            f"input_shape must be (length,) or (length, features), got {input_shape!r}"
        )
    for what, number in (("classes", classes), ("words", words), *(("length", n) for n in shape)):
        check_whole(what, number, 1)
    return Model(
        name="bilstm",
        build=partial(_BiLSTM, classes, shape, words),
        input_shape=shape,
        num_outputs=classes,
        config={"classes": classes, "input_shape": list(shape), "words": words},
    )


class _BiLSTM(nn.Module):
    def __init__(self, classes: int, shape: tuple[int, ...], words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, FEATURES, padding_idx=0) if len(shape) == 1 else None
        features = FEATURES if len(shape) == 1 else shape[-1]
        self.first = nn.LSTM(features, 64, batch_first=True, bidirectional=True)
        self.second = nn.LSTM(128, 32, batch_first=True, bidirectional=True)
        self.dense = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5))
        self.classifier = nn.Linear(64, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.flatten(0, 1) if inputs.ndim == 4 else inputs  # one channel
        vectors = rows if self.embedding is None else self.embedding(rows.long())
        _, (last, _) = self.second(self.first(vectors)[0])
        outputs: Tensor = self.classifier(self.dense(last.transpose(0, 1).flatten(1)))
        return outputs
