"""Seeds as documented hashes; device selection and thread limits; worker processes; locked folders.

Independent of clients and models.
"""

from bcfl.runtime.devices import device_named, limited_threads
from bcfl.runtime.folders import RUN_FORMAT, BusyError, locked, write_aside
from bcfl.runtime.seeds import derive_seed, generator, lineage_key
from bcfl.runtime.workers import become_worker, died, portable

__all__ = [
    "RUN_FORMAT",
    "BusyError",
    "become_worker",
    "derive_seed",
    "device_named",
    "died",
    "generator",
    "limited_threads",
    "lineage_key",
    "locked",
    "portable",
    "write_aside",
]
