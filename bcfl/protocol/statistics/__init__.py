"""Statistics that clients report of models on their samples: one frozen class per file.

`statistic` has their interface, `sample_values` the per-sample values of networks' outputs.
Requests are in `bcfl.protocol.requests`; executors, which compute them, in `bcfl.executors`.
"""
