"""Our rounds beside those of FedBase, whose classes do the work in FedBase's order of calls."""

from importlib.metadata import version

from bcfl.runtime.devices import limited_threads
from tests.bench.federation.rounds import CNN, MODELS, ROUNDS, Rounds, images, interleaved
from tests.bench.peers.absent import absent

INSTALL = "pip install fedbase==0.10.3 --no-deps; it imports pandas, scikit-learn, matplotlib"
LIMIT = "the convolutions themselves"


def compared(count, samples, few, pairs, threads):
    """IFCA with all samples and with a few scored by us, then FedAvg.

    FedBase scores the first ten batches whatever is asked, and one of two models twice at each
    comparison. Its tenth batch of 300 samples holds 12: its ten steps see 300 samples, ours 320.
    """
    from tests.bench.peers.fedbase_rounds import IFCA, FedAvg

    clients = images(count, samples)
    about = f"{CNN.name}, {count} clients x {samples}, one round"
    theirs = f"FedBase {version('fedbase')}"
    rows = []
    for scored in (None, few):
        settings = {"num_clusters": MODELS, "score_samples": scored}
        ours = Rounds("ifca", clients, CNN, threads, **settings)
        name = f"{about} of IFCA, K = {MODELS}, {scored or 'all'} samples scored by us"
        other = IFCA(clients, MODELS)
        rows.append(interleaved(f"{name}: ours, then {theirs}", ours, other, LIMIT, pairs))
    ours, other = Rounds("fedavg", clients, CNN, threads), FedAvg(clients)
    name = f"{about} of FedAvg: ours, then {theirs}"
    return [*rows, interleaved(name, ours, other, LIMIT, pairs)]


def run(count=40, samples=300, few=64, pairs=ROUNDS, threads=2):
    """CNN on two threads, 40 clients x 300 of noise, no evaluation."""
    if absent(["fedbase", "pandas", "sklearn", "matplotlib"], INSTALL):
        return []
    with limited_threads(threads):
        return compared(count, samples, few, pairs, threads)
