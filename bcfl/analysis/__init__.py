"""What a run has learned: predictions, uncertainty, association graphs, export.

Reads values; never changes what a federation does.
"""
