"""Integer seeds and keys as documented hashes of their purpose.

A seed depends on the run's seed, the round, the client and the purpose alone, so that results are
independent of the order of work, of chunking and of the number of workers.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def derive_seed(*parts: int | str) -> int:
    """Derive a seed in [0, 2**63) from the run seed, the round, the client and the purpose.

    The parts are written as decimal numbers and text, joined by line feeds and hashed by BLAKE2b to
    8 bytes, read as a big-endian integer and shifted right by one bit.

    Args:
        *parts: run seed, round, client, purpose, or what else identifies the use.
    """
    digest = blake2b("\n".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*parts: int | str) -> np.random.Generator:
    """NumPy generator seeded by `derive_seed` of the parts."""
    return np.random.default_rng(derive_seed(*parts))


def lineage_key(*parts: object) -> str:
    """Short hash of the values from which an object was derived."""
    return blake2b("\n".join(map(str, parts)).encode(), digest_size=10).hexdigest()
