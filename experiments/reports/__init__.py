"""Tables, pages and stories of finished runs.

Single pictures are in `pictures`; numbers come from `experiments.scores`.
"""
