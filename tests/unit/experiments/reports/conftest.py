"""A small run folder written by hand, as `bcfl run` leaves it."""

import json

import networkx as nx
import numpy as np
import pytest

from bcfl.runtime import RUN_FORMAT
from experiments.config.scenario import from_table
from experiments.launch import start
from experiments.runs.plan import Plan
from experiments.runs.runner import Experiment, RunCallbacks

SCORES = ("accuracy", "macro_f1", "ari", "ami", "nll", "ece")


def one_round(number, accuracy, ari, changes):
    row = {
        "round": number,
        "accuracy": accuracy,
        "macro_f1": accuracy - 0.1,
        "nll": 1 - accuracy,
        "ece": 0.05,
        "brier": 0.2,
        "ari": ari,
        "ami": ari,
        "cluster_sizes": [5, 3, 4],
        "clusters_used": 3,
        "hypothesis_weights": [0.7, 0.3],
        "parents": [[0], [0]],
        "effective_hypotheses": 1.72,
        "log_captured_mass": -3.5 + number / 10,
        "participants": 12,
        "exchanges": 2,
        "scores_requested": 36,
        "scores_run": 36,
        "trainings_requested": 24,
        "trainings_run": 13,
        "bytes_down": 2_000_000,
        "bytes_up": 1_000_000,
        "num_floored": 0,
        "outside_hull": 0.0,
        "outweighed": 0.0,
        "failures": [],
        "seconds": {"train": 0.5, "score": 0.1, "server": 0.2, "evaluate": 0.1, "total": 0.9},
    }
    return {**row, **changes}


def draw_graph(random, clients, groups):
    graph = nx.Graph()
    for index in range(clients):
        graph.add_node(f"client-{index:04d}", cluster=index % 4)
        if groups:
            graph.nodes[f"client-{index:04d}"]["group"] = index % groups
    names = list(graph)
    for one in range(clients):
        for other in range(one + 1, clients):
            probability = random.random()
            if probability > 0.3:
                graph.add_edge(names[one], names[other], probability=probability - 0.3)
    return graph


def statistic(values):
    known = [value for value in values if value is not None]
    mean = float(np.mean(known)) if known else None
    std = float(np.std(known, ddof=1)) if len(known) > 1 else 0.0
    return {"mean": mean, "std": std if known else None, "values": values}


@pytest.fixture(scope="session")
def make_run(tmp_path_factory):
    """Writes a run folder: methods, seeds, rounds, clients, groups (0: unknown), row changes."""

    def make(methods=("fedavg", "bcfl-g"), seeds=(0, 1), clients=12, groups=3, **changes):
        folder = tmp_path_factory.mktemp("runs") / "run"
        random = np.random.default_rng(1)
        summary = {}
        for method in methods:
            values = {name: [] for name in (*SCORES, "seconds")}
            for seed in seeds:
                pair = folder / method / f"seed-{seed}"
                pair.mkdir(parents=True)
                levels = np.sort(random.uniform(0.2, 0.99, size=6))
                rows = [
                    one_round(n, level, level / 2 if groups else None, changes)
                    for n, level in enumerate(levels.tolist(), start=1)
                ]
                lines = "".join(json.dumps(row) + "\n" for row in rows)
                (pair / "metrics.jsonl").write_text(lines)
                nx.write_graphml(draw_graph(random, clients, groups), pair / "graph.graphml")
                for name in SCORES:
                    last = [row[name] for row in rows[-3:]]
                    values[name].append(None if None in last else float(np.mean(last)))
                values["seconds"].append(5.4)
            summary[method] = {name: statistic(found) for name, found in values.items()}
            summary[method]["trainings_requested"] = statistic([144] * len(seeds))
            summary[method]["trainings_run"] = statistic([78] * len(seeds))
            for name, times in {"communication": 7.5, "storage": 10, "computation": 4}.items():
                summary[method][name] = statistic([times] * len(seeds))
        description = {
            "format": RUN_FORMAT,
            "scenario": {
                "name": "tiny",
                "description": "A <tiny> example",
                "federation": {"rounds": 6},
            },
            "methods": list(methods),
            "seeds": list(seeds),
            "command": "bcfl run tiny --seeds 0,1",
            "versions": {"bcfl": "0.1.0", "torch": "2.13.0"},
            "machine": {"cores": 2},
            "data": {"dataset": "optdigits", "clients": clients, "groups": groups},
        }
        (folder / "run.json").write_text(json.dumps(description))
        text = json.dumps({"scenario": "tiny", "methods": summary})
        (folder / "summary.json").write_text(text)
        return folder

    return make


@pytest.fixture(scope="session")
def run_of(tmp_path_factory):
    """Runs the scenario of a table; returns the folder."""

    def run(table):
        path = tmp_path_factory.mktemp("run") / "run"
        plan = Plan(
            scenario=from_table(table),
            device="cpu",
            threads=1,
            jobs=1,
            command=f"bcfl run {table['name']}",
        )
        start(plan, path, Experiment(scenario=plan.scenario, device="cpu"), RunCallbacks())
        return path

    return run
