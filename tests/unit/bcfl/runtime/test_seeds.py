from hashlib import blake2b

import numpy as np

from bcfl.runtime.seeds import derive_seed, generator, lineage_key


def test_a_seed_is_the_documented_hash():
    """Computed with another implementation of BLAKE2b (coreutils' b2sum -l 64)."""
    assert derive_seed(0) == 0x842B7D9D43CDDF75 >> 1
    assert derive_seed(0, 3, "client-7", "batches") == 0x2E585005A34565AC >> 1


def test_seeds_are_63_bits_and_differ_in_every_part():
    seeds = [
        derive_seed(seed, round, client, purpose)
        for seed in range(5)
        for round in range(5)
        for client in ("a", "b", "ä")
        for purpose in ("batches", "score")
    ]
    assert len(set(seeds)) == len(seeds) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62


def test_parts_are_separated():
    assert derive_seed(1, 23) != derive_seed(12, 3) != derive_seed(123)


def test_generators_of_equal_seeds_draw_equal_numbers():
    first, again = generator(1, "x").random(5), generator(1, "x").random(5)
    assert first.tolist() == again.tolist()
    assert first.tolist() != generator(2, "x").random(5).tolist()
    assert first.tolist() == np.random.default_rng(derive_seed(1, "x")).random(5).tolist()


def test_a_lineage_key_is_a_hash_of_twenty_characters():
    assert lineage_key("blocks", 1, 0.5) == blake2b(b"blocks\n1\n0.5", digest_size=10).hexdigest()
    assert len(lineage_key()) == 20
