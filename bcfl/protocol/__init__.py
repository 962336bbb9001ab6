"""The messages between server and clients: requests, answers, objectives, statistics.

Plain values by name and numbers, fit for a network. Who answers is in `bcfl.executors`, what is
asked and why in `bcfl.policies`.
"""
