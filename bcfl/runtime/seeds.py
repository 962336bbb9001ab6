"""Integer seeds and keys as a written-down hash of what they are for.

A seed depends on the run's seed, the round, the client and the purpose alone, so that no result
depends on the order in which work is done, on chunking, or on the number of workers.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def derive_seed(*parts: int | str) -> int:
    """A seed in [0, 2**63) from the run seed, the round, the client and the purpose.

    The parts are written as decimal numbers and text, joined by a line feed and hashed by BLAKE2b
    with 8 bytes of digest, read as a big-endian number without its highest bit.
    """
    digest = blake2b("\n".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*parts: int | str) -> np.random.Generator:
    """A random generator seeded by `derive_seed`."""
    return np.random.default_rng(derive_seed(*parts))


def lineage_key(*parts: object) -> str:
    """A short name for a value, from all that it was made of."""
    return blake2b("\n".join(map(str, parts)).encode(), digest_size=10).hexdigest()
