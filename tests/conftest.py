"""All tests run with one thread: their problems are too small for more."""

import torch

torch.set_num_threads(1)
