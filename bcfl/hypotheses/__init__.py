"""What the server believes: associations, hypotheses with weights, and posteriors over models.

Values only, immutable. How hypotheses are managed is in `bcfl.trackers`, how associations are
found in `bcfl.policies`.
"""
