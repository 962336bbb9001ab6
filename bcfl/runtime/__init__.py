"""Seeds derived from what they are for; device selection and thread limits.

Nothing here knows of clients, models or methods.
"""

from bcfl.runtime.devices import device_named, limited_threads
from bcfl.runtime.seeds import derive_seed, generator, lineage_key

__all__ = ["derive_seed", "device_named", "generator", "limited_threads", "lineage_key"]
