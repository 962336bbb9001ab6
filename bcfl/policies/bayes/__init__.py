"""Association by likelihood: IFCA, BCFL, and what weighs their hypotheses.

Posteriors themselves are in the `posteriors` package.
"""
