"""Result tables, HTML pages and per-client reports of runs.

Figures are in `pictures`; scores come from `experiments.scores`.
"""
