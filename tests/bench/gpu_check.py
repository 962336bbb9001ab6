"""Executors on a GPU: agreement with float64 on the CPU, and time against measured ceilings.

`python -m tests.bench.gpu_check [--clients 40,240,1000] [--out DIR]` needs only torch and this
checkout; with `lap` and Fashion-MNIST at hand it also runs the methods of the BCFL paper. With
`--device cpu` it rehearses the same steps on a few small clients.
"""

import argparse
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from bcfl import ClientData, Objective
from bcfl.executors import BatchedExecutor, LoopExecutor
from bcfl.executors.cuda.graph import GraphDescent, eager, graph_executor
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Train
from experiments.models import fashion_cnn, mlp
from tests.bench.gpu_baseline import GroupedRound

LIMIT, TF32_LIMIT = 1e-4, 3e-2
NETWORKS = {
    "mlp": mlp((1, 28, 28), 200, 10),
    "cnn": fashion_cnn(norm="none"),
    "cnn, group norm": fashion_cnn(norm="group"),
    "cnn, batch norm": fashion_cnn(norm="batch"),
}
FLOP_PER_SAMPLE = 17.2e6
"""Of the convolutional network, for one training step."""
OBJECTIVE = Objective(local_steps=10, batch_size=32, learning_rate=0.01, curvature="uniform")


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
    return from_initial(model, "start", mean.to(device, dtype), buffers.to(device, dtype), 1.0)


def rehearsed(clients, model, seed, device, dtype):
    """The executor `graph` where there is no GPU: steps are called, not replayed."""
    batched = BatchedExecutor.on(clients, model, seed, device, dtype)
    return BatchedExecutor(
        loop=batched.loop,
        samples=batched.samples,
        network=batched.network,
        memory=None,
        descent=GraphDescent(eager),
    )


def executors(device):
    graph = graph_executor if device.type == "cuda" else rehearsed
    return {"loop": LoopExecutor.on, "batched": BatchedExecutor.on, "graph": graph}


def training(build, model, clients, device, dtype):
    """A function that trains all clients once; it returns (clients, parameters) on the device."""
    executor, start = build(clients, model, 0, device, dtype), born(model, device, dtype)
    asked = [Train(data.client, start.key, OBJECTIVE) for data in clients]

    def work():
        answers = executor.answer(asked, {start.key: start}, 0)
        return torch.stack([answers[request].mean for request in asked])

    return work


def milliseconds(work, repeats, device):
    """The median of some runs, after one that sets things up."""
    times = []
    for index in range(repeats + (repeats > 1)):
        started = perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if index or repeats == 1:
            times.append(1e3 * (perf_counter() - started))
    return float(np.median(times))


def ceilings(device, size):
    """TFLOP/s of a matrix product, TB/s of a copy, on random numbers."""
    matrix = torch.randn(size, size, device=device)
    product = milliseconds(lambda: matrix @ matrix, 5, device)
    copy = milliseconds(matrix.clone, 5, device)
    return 2 * size**3 / product / 1e9, 2 * matrix.nbytes / copy / 1e9


def agreements(device, samples, limit):
    """Lines on the distance from float64 on the CPU, and whether all are in the limit.

    Batch normalisation divides by deviations that can be next to nothing, so float32 itself is far
    from float64: up to three times what the loop on the CPU loses is allowed.
    """
    lines, right = [], True
    clients, cpu = drawn(4, samples), torch.device("cpu")
    for name, model in NETWORKS.items():
        exact = training(LoopExecutor.on, model, clients, cpu, torch.float64)()

        def distance(build, place, model=model, exact=exact):
            found = training(build, model, clients, place, torch.float32)().double().cpu()
            return float((found - exact).norm() / exact.norm())

        lost = distance(LoopExecutor.on, cpu)
        allowed = max(limit, 3 * lost)
        lines.append(f"| {name} | loop on the CPU | {lost:.1e} | |")
        for kind, build in executors(device).items():
            error = distance(build, device)
            right = right and error <= allowed
            lines.append(f"| {name} | {kind} | {error:.1e} | {allowed:.0e} |")
    return lines, right


def written_out(model, clients, device):
    """The baseline on batches of the same sizes."""
    starts = model.initial(0)[0].to(device).expand(len(clients), -1)
    steps, batch = OBJECTIVE.local_steps, OBJECTIVE.batch_size
    inputs = torch.randn(steps, len(clients), batch, 1, 28, 28, device=device)
    targets = torch.randint(0, 10, (steps, len(clients), batch), device=device)
    return GroupedRound(starts, inputs, targets, OBJECTIVE.learning_rate, OBJECTIVE.momentum)


def rounds(device, counts, samples, flops):
    """Lines on the time of a round of trainings, by each executor and number of clients."""
    model, lines = NETWORKS["cnn"], []
    for count in counts:
        clients = drawn(count, samples)
        work = FLOP_PER_SAMPLE * count * OBJECTIVE.local_steps * OBJECTIVE.batch_size
        baseline = milliseconds(written_out(model, clients, device).run, 5, device)
        lines.append(f"| {count} | written out | {baseline:.1f} | 1.00x | |")
        for kind, build in executors(device).items():
            trains = training(build, model, clients, device, torch.float32)
            spent = milliseconds(trains, 1 if kind == "loop" else 5, device)
            share = work / spent / 1e9 / flops
            lines.append(
                f"| {count} | {kind} | {spent:.1f} | {baseline / spent:.2f}x | {share:.1%} |"
            )
    return lines


def methods(device, count):
    """Lines on the methods of Table 1 of the BCFL paper, on Fashion-MNIST."""
    if find_spec("lap") is None:
        return ["The methods were not run: lap is not installed."]
    from tests.bench.gpu_methods import table

    return table(device, count)


def report(options):
    """All lines, and whether executors agree."""
    device, right = torch.device(options.device), True
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU (rehearsal)"
    lines = [f"# {datetime.now():%Y-%m-%d}: executors on {name}, torch {torch.__version__}"]
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        flops, copy = ceilings(device, options.size)
        words = "TF32" if tf32 else "float32"
        lines += ["", f"## {words}: a matrix product {flops:.1f} TFLOP/s, a copy {copy:.2f} TB/s"]
        lines += ["", "| network | executor | distance | limit |", "|---|---|---:|---:|"]
        found, good = agreements(device, options.samples, TF32_LIMIT if tf32 else LIMIT)
        right, lines = right and good, lines + found
        lines += [
            "",
            "Distance of all parameters from float64 on the CPU after 10 steps, relative.",
        ]
        lines += ["", "| CNNs | executor | ms a round | speed | of the product's rate |"]
        lines += ["|---:|---|---:|---:|---:|"]
        lines += rounds(device, options.clients, options.samples, flops)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    lines += ["", *methods(options.device, options.rounds)]
    return lines, right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--clients", default="40,240,1000")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--size", type=int, default=8192, help="of the matrix product")
    parser.add_argument("--rounds", type=int, default=5, help="of each method")
    parser.add_argument("--out", type=Path, help="folder for the table")
    options = parser.parse_args()
    options.clients = [int(count) for count in options.clients.split(",")]
    lines, right = report(options)
    print("\n".join(lines))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"gpu-{datetime.now():%Y-%m-%d}.md").write_text("\n".join(lines) + "\n")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
