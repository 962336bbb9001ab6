"""Ranked client-cluster associations and their exact marginals (numpy in, numpy out)."""
