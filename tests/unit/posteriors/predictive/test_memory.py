"""Linearised predictions work through samples in bounded memory."""

import subprocess
import sys

PROGRAM = """
import resource
import torch
from experiments.models import fashion_cnn_gn
from posteriors import DiagonalGaussian
from posteriors.gaussians.covariance import StructuredGaussian
from posteriors.predictive import Linearised
from posteriors.predictive.predictive import outputs_of_all

torch.set_num_threads(1)
network = fashion_cnn_gn().module()
mean = torch.nn.utils.parameters_to_vector(network.parameters()).detach()
several = [
    Linearised(
        network,
        StructuredGaussian.from_diagonal(DiagonalGaussian(mean, torch.full_like(mean, precision))),
    )
    for precision in (1.0, 10.0, 100.0, 1000.0)
]
for samples in (28, 280):
    outputs_of_all(several, torch.rand(samples, 1, 28, 28))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_ten_times_the_samples_take_little_more_memory():
    """In kilobytes of the largest resident set; their Jacobians in float64 are 650 MB."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    few, many = map(int, found.stdout.split())
    assert many - few < 150_000
