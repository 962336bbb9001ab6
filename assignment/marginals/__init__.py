"""Association marginals: exact where sizes allow, belief propagation or Gibbs sampling beyond.

The partition function alone is `assignment.partition`.
"""
