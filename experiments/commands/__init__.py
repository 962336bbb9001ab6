"""The commands of `bcfl`, one file for each kind: options, messages, exit codes.

What they run is in `experiments.runs`, what they write in `experiments.reports`.
"""
