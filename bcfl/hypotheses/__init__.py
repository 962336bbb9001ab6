"""Associations, hypotheses with weights, and posteriors over models: the belief of the server.

Values only, immutable. How hypotheses are managed is in `bcfl.trackers`, how associations are
found in `bcfl.policies`.
"""
