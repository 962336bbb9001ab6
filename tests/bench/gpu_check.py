"""Executors on a GPU: agreement with float64 on the CPU, and time against measured ceilings.

`python -m tests.bench.gpu_check [--device cpu] [--clients 40,240,1000]` needs only torch and this
checkout. On a CPU it is a dry run of the same steps.
"""

import argparse
from time import perf_counter

import numpy as np
import torch

from bcfl import ClientData, Objective
from bcfl.executors import BatchedExecutor, LoopExecutor
from bcfl.posterior import birth
from bcfl.requests import Train
from experiments.models import fashion_cnn, mlp

FLOAT32_LIMIT, TF32_LIMIT = 1e-3, 3e-2
NETWORKS = {"mlp": mlp((1, 28, 28), 200, 10), "cnn": fashion_cnn(norm="none")}


def drawn(count, samples):
    random = np.random.default_rng(0)
    return [
        ClientData.from_arrays(
            f"c{i:05}",
            (
                random.normal(size=(samples, 1, 28, 28)).astype(np.float32),
                random.integers(0, 10, samples),
            ),
        )
        for i in range(count)
    ]


def born(model, device, dtype):
    mean, buffers = model.initial(0)
    return birth(model, "start", mean.to(device, dtype), buffers.to(device, dtype), 1.0)


def trained(kind, model, clients, device, dtype):
    """A function that trains all clients once, and waits for the device."""
    executor, start = kind.on(clients, model, 0, device, dtype), born(model, device, dtype)
    asked = [Train(data.client, start.key, Objective(learning_rate=0.01)) for data in clients]

    def work():
        answers = executor.answer(asked, {start.key: start}, 0)
        means = torch.stack([answers[request].mean for request in asked])
        return means.cpu()

    return work


def seconds(work, repeats=3):
    work()
    times = []
    for _ in range(repeats):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)


def ceilings(device, size):
    """TFLOP/s of a matrix product and TB/s of a copy."""
    matrix = torch.ones(size, size, device=device)
    product = seconds(lambda: float((matrix @ matrix)[0, 0]))
    copy = seconds(lambda: float(matrix.clone()[0, 0]))
    return 2 * size**3 / product / 1e12, 2 * matrix.nbytes / copy / 1e12


def agreement(name, device, count, samples, limit):
    model, clients = NETWORKS[name], drawn(count, samples)
    exact = trained(LoopExecutor, model, clients, torch.device("cpu"), torch.float64)()
    found = trained(BatchedExecutor, model, clients, device, torch.float32)().double()
    error = float((found - exact).abs().max() / exact.abs().max())
    print(f"{name}: largest error against float64 {error:.1e}, allowed {limit:.0e}")
    return error <= limit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--clients", default="40,240,1000")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--size", type=int, default=8192, help="of the matrix product")
    options = parser.parse_args()
    device, right = torch.device(options.device), True
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        flops, copy = ceilings(device, options.size)
        print(f"TF32 {tf32}: matrix product {flops:.2f} TFLOP/s, copy {copy:.3f} TB/s")
        for name, model in NETWORKS.items():
            limit = TF32_LIMIT if tf32 else FLOAT32_LIMIT
            right = agreement(name, device, 4, options.samples, limit) and right
            for count in map(int, options.clients.split(",")):
                clients = drawn(count, options.samples)
                spent = seconds(trained(BatchedExecutor, model, clients, device, torch.float32))
                print(f"{name}, {count} clients: {1e3 * spent:.1f} ms a round")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
