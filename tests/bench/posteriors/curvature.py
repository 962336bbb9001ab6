"""Diagonal curvature and held-out predictions against laplace-torch, side by side in one run."""

import copy
import importlib
import resource
import warnings
from statistics import median
from time import perf_counter

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from posteriors import DiagonalGaussian, diagonal_curvature, local_posterior_fit
from tests.bench.federation.lean import network
from tests.bench.row import Row

CLIENTS, SAMPLES = 40, 300


def run():
    """All comparisons of the posteriors package, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            return [exact_curvature(), drawn_curvature(), linearised_prediction()]
    finally:
        torch.set_num_threads(threads)


def data(samples=SAMPLES):
    return torch.randn(samples, 1, 28, 28), torch.randint(0, 10, (samples,))


def by_laplace(module, inputs, targets):
    """Exact diagonal by laplace-torch on BackPACK."""
    laplace = importlib.import_module("laplace")
    backend = importlib.import_module("laplace.curvature").BackPackGGN
    fitted = laplace.Laplace(
        module, "classification", subset_of_weights="all", hessian_structure="diag",
        backend=backend,
    )  # fmt: skip
    fitted.fit(DataLoader(TensorDataset(inputs, targets), batch_size=100))
    return fitted.H


def exact_curvature():
    """Every client's exact diagonal; the peak of memory is ours alone, since ours runs first."""
    module, clients = network(), [data() for _ in range(CLIENTS)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours, fast = timed(lambda: [diagonal_curvature(module, *client) for client in clients])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    twin = copy.deepcopy(module)
    theirs, slow = timed(lambda: [by_laplace(twin, *client) for client in clients])
    for one, other in zip(ours, theirs, strict=True):
        assert np.linalg.norm(one - other) <= 1e-4 * np.linalg.norm(other)
    name = f"exact diagonal GGN, 28938 parameters, {CLIENTS} clients x {SAMPLES} samples"
    return Row(name, fast, slow, slow / fast, f"9 backward passes; {grown:.0f} MB over the base")


def drawn_curvature():
    """One client: drawn targets against the exact matrix, both ours."""
    module, client = network(), data()
    generator = torch.Generator().manual_seed(0)
    times = {"mc_ggn": [], "ggn": []}
    for _ in range(3):
        for kind, found in times.items():
            _, spent = timed(
                lambda kind=kind: diagonal_curvature(
                    module, *client, kind=kind, generator=generator
                )
            )
            found.append(spent)
    fast, slow = median(times["mc_ggn"]), median(times["ggn"])
    limit = "one backward pass instead of 9; forward and unfolding stay"
    return Row(
        "the same from drawn targets, baseline exact, 1 client", fast, slow, slow / fast, limit
    )


def linearised_prediction():
    """GLM predictive of 200 images with a diagonal posterior."""
    module, client, (inputs, _) = network(), data(), data(200)
    vector = torch.cat([value.detach().flatten() for value in module.parameters()])
    prior = DiagonalGaussian.isotropic(torch.zeros_like(vector), 1.0)
    ours = local_posterior_fit("laplace-diag").fit(module, *client, prior).predictive
    laplace = importlib.import_module("laplace")
    backend = importlib.import_module("laplace.curvature").BackPackGGN
    theirs = laplace.Laplace(
        copy.deepcopy(module), "classification", subset_of_weights="all",
        hessian_structure="diag", backend=backend,
    )  # fmt: skip
    theirs.fit(DataLoader(TensorDataset(*client), batch_size=100))
    mine, fast = timed(lambda: ours.probabilities(inputs))
    other, slow = timed(
        lambda: torch.cat(
            [theirs(part, pred_type="glm", link_approx="probit") for part in inputs.split(50)]
        )
    )
    np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)
    name = "linearised prediction of 200 images, probit, diagonal"
    return Row(name, fast, slow, slow / fast, "a Jacobian of 28938 x 10 per image")


def timed(call):
    """Result and milliseconds of one call."""
    start = perf_counter()
    result = call()
    return result, (perf_counter() - start) * 1e3


if __name__ == "__main__":
    for row in run():
        print(
            f"{row.name:76} {row.ours_ms:9.1f} {row.baseline_ms:9.1f} {row.ratio:6.2f}x {row.limit}"
        )
