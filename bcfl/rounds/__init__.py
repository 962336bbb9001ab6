"""The server round and what runs it: exchange, checks of answers, cost ledger, state, checkpoints.

Knows no method. What a run has learned is in `bcfl.analysis`.
"""
