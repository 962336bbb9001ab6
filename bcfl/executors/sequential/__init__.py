"""The reference: one problem after the other, one network at a time.

What the other executors are tested against.
"""
