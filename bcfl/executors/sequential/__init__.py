"""The reference executor: one client and one network at a time.

The other executors are tested against it.
"""
