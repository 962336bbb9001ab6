"""Seeds as documented hashes; device selection and thread limits.

Independent of clients and models.
"""

from bcfl.runtime.devices import device_named, limited_threads
from bcfl.runtime.seeds import derive_seed, generator, lineage_key

__all__ = ["derive_seed", "device_named", "generator", "limited_threads", "lineage_key"]
