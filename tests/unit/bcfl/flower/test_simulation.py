"""Messages as Flower's records, and a run on its simulation engine."""

import gc
import json

import numpy as np
import pytest

from bcfl.executors import ExecutorConfig, Payload, RemoteExecutor, Site, model_digest
from bcfl.flower import node_app, simulated_grid
from bcfl.flower.simulation import EngineError
from tests.contract.conftest import everything, federation_of

ROUNDS = 3
FAMILIES = ["bcfl-mht-8", "wecfl", "ifca-cam", "faacl", "bcfl-g"]


def open_node(setup, config):
    federation = federation_of(setup, executor="loop")
    clients = federation.answering[config["partition-id"] :: config["num-partitions"]]
    return Site(federation.executor_of(ROUNDS), clients, federation.model)


def test_without_flower_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("bcfl.flower.simulation.find_spec", lambda name: None)
    with (
        pytest.raises(EngineError, match=r"pip install 'bcfl\[flower-simulation\]'"),
        simulated_grid(open_node, 2),
    ):
        pass


def test_a_federation_of_this_executor_must_be_given_a_grid():
    federation = federation_of("wecfl", executor=ExecutorConfig("flower", nodes=2))
    with pytest.raises(ValueError, match="RemoteExecutor on a grid"):
        federation.run(1)


@pytest.mark.parametrize(("nodes", "cpus"), [(0, 1.0), (1.5, 1.0), (2, 0.0)])
def test_numbers_of_nodes_and_processors_are_checked(nodes, cpus):
    with pytest.raises(ValueError, match=r"nodes must be|cpus_per_node must be"):
        ExecutorConfig("flower", nodes=nodes, cpus_per_node=cpus)
    with pytest.raises(ValueError, match="gpus_per_node must be"):
        ExecutorConfig("flower", gpus_per_node=-1.0)
    for options in ({"nodes": 2}, {"gpus_per_node": 0.5}):
        with pytest.raises(ValueError, match="for executor 'flower' alone"):
            ExecutorConfig("loop", **options)


def test_messages_survive_flowers_records():
    pytest.importorskip("flwr", reason="Flower is not installed")
    from bcfl.flower.records import of_records, to_records

    arrays = {
        "k/mean": np.arange(3, dtype=np.float32),
        "0": np.array(4.0),
        "1": np.array([[True, False]]),
        "2": np.zeros(0, dtype=np.float32),
    }
    back = of_records(to_records(Payload("{}", arrays)))
    assert back.text == "{}"
    for name, array in arrays.items():
        assert back.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(back.arrays[name], array)
        assert back.arrays[name].shape == array.shape


def test_records_of_something_else_are_an_empty_message():
    pytest.importorskip("flwr", reason="Flower is not installed")
    from flwr.app import ConfigRecord, RecordDict

    from bcfl.flower.records import of_records

    assert of_records(RecordDict({"text": ConfigRecord({"other": 1})})).text == ""


def test_an_app_of_a_node_has_the_three_handlers():
    pytest.importorskip("flwr", reason="Flower is not installed")
    from flwr.app import Context, Message, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

    from bcfl.flower.records import of_records, to_records

    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1
    app = node_app(open_node)
    config = {"partition-id": 1, "num-partitions": 3}
    context = Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={})
    greeting = Payload(json.dumps({"format": 1, "setup": "wecfl"}), {})
    for kind in ("query.greet", "evaluate.score", "train.local"):
        message = Message(to_records(greeting), 1, kind)
        answer = json.loads(of_records(app(message, context).content).text)
        assert answer["clients"] == ["c1", "c4"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Ray and Flower themselves
def test_simulated_runs_have_the_bits_of_the_loop():
    pytest.importorskip("flwr", reason="Flower is not installed")
    pytest.importorskip("ray", reason="Ray is not installed")
    import ray

    with simulated_grid(open_node, 6) as grid:
        for name in FAMILIES:
            federation = federation_of(name, executor="loop")
            digest = model_digest(federation.model)
            executor = RemoteExecutor(grid=grid, setup=name, digest=digest, patience=600.0)
            there = federation.run(ROUNDS, executor=executor)
            assert not any(record.ledger.failures for record in there.records)
            assert everything(federation.run(ROUNDS).state) == everything(there.state), name
    ray.shutdown()
    gc.collect()  # Ray leaves files open: their warnings belong here
