"""Clients that are not asked, or do not answer: what is known of them stays as it was."""

import pytest

MANY = (8,) * 9
FOLLOWED = ["fedavg", "fedavg-plus", "ifca", "wecfl", "fedgroup", "fedsoft", "bcfl-g", "bcfl-c-3"]
"""Methods of a fixed number of clusters and one hypothesis, which never rename a cluster."""

pytestmark = pytest.mark.filterwarnings("ignore::bcfl.rounds.UntrainedWarning")


def test_absent_clients_stay_together(name, federation, assert_lawful):
    """Clusters may be renamed, merged or divided; absent clients of one cluster are not parted."""
    run = federation(name, sizes=MANY, client_fraction=0.4, seed=5).run(5)
    assert_lawful(run, [f"c{i}" for i in range(9)])
    seen = set()
    for before, record in zip((None, *run.records), run.records, strict=False):
        assert len(record.participants) == 4
        seen |= set(record.participants)
        absent = sorted(set(run.clients) - set(record.participants))
        leading = record.snapshot.associations[0]
        assert {c for c in run.clients if leading.label(c) >= 0} == seen
        if before is not None and len(before.snapshot.associations) == 1:
            old = before.snapshot.associations[0]
            known = [client for client in absent if client in seen]
            for one in known:
                for other in known:
                    if row(old, one) == row(old, other):
                        assert row(leading, one) == row(leading, other)


def row(association, client):
    return association.serving[association.position[client]].tolist()


@pytest.mark.parametrize("method", FOLLOWED)
def test_absent_clients_keep_their_serving(method, federation):
    run = federation(method, sizes=MANY, client_fraction=0.4, seed=5).run(4)
    for before, record in zip(run.records, run.records[1:], strict=False):
        old, new = (r.snapshot.associations[0] for r in (before, record))
        for client in set(run.clients) - set(record.participants):
            assert row(new, client) == pytest.approx(row(old, client), abs=1e-12)


def test_hypotheses_keep_absent_clients_where_their_parents_had_them(federation):
    run = federation("bcfl-mh-3", sizes=MANY, client_fraction=0.4, seed=5).run(4)
    for before, record in zip(run.records, run.records[1:], strict=False):
        snapshot = record.snapshot
        for association, (parent,) in zip(snapshot.associations, snapshot.parents, strict=True):
            old = before.snapshot.associations[parent]
            for client in set(run.clients) - set(record.participants):
                assert association.label(client) == old.label(client)


def test_when_all_clients_drop_out_nothing_is_learned(name, federation, assert_lawful, same_models):
    """Who does not train is tested all the same, unless the test is of fine-tuned models."""
    one = federation(name, drop_out=1.0)
    run = one.run(2)
    assert_lawful(run, run.clients)
    starts = federation(name).initial_state().hypotheses
    assert all(same_models(h, starts[h.lineage[0]]) for h in run.hypotheses)
    assert all(record.ledger.failures for record in run.records)
    tested = set() if one.method.finetuned else set(run.clients)
    assert set(run.records[0].evaluations) == tested


def test_after_a_round_without_clients_the_federation_continues(
    name, standard_run, federation, assert_lawful, same_models
):
    _, states, _ = standard_run(name)
    learned = states[1]
    alone = federation(name, drop_out=1.0).run(3, state=learned)
    for hypothesis in alone.hypotheses:
        assert any(same_models(hypothesis, parent) for parent in learned.hypotheses)
    assert_lawful(federation(name).run(5, state=alone.state), alone.clients)


def test_random_drop_outs_leave_lawful_hypotheses(name, federation, assert_lawful):
    run = federation(name, sizes=(5,) * 8, drop_out=0.5, seed=2).run(4)
    assert_lawful(run, run.clients)
    assert any(record.ledger.failures for record in run.records)
