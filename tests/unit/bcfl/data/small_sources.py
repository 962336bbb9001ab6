"""Small data sets of other libraries, and stand-ins for them."""

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

X, Y = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 0, 1, 1, 0])
FRAME = pandas.DataFrame({"a": X[:, 0].numpy(), "b": X[:, 1].numpy(), "label": Y.numpy()})


class Columns:
    """As a data set of Hugging Face: columns by name."""

    column_names = ("x", "label")

    def __len__(self):
        return len(X)

    def __getitem__(self, name):
        return {"x": X.tolist(), "label": Y.tolist()}[name]


class Endless(Dataset):
    def __getitem__(self, index):
        return X[0], 0


def hugging_face(format=None):
    package = pytest.importorskip("datasets", reason="datasets of Hugging Face is not installed")
    colours = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)
    kinds = package.Features(image=package.Image(), label=package.ClassLabel(names=["no", "yes"]))
    columns = {"image": [Image.fromarray(image) for image in colours], "label": [0, 1, 1, 0]}
    data = package.Dataset.from_dict(columns, features=kinds)
    return torch.from_numpy(colours).permute(0, 3, 1, 2), data.with_format(format)


class Mappings(Dataset):
    """Samples by name, as many torch data sets give them."""

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return {"image": X[index], "more": 1.0, "target": int(Y[index])}
