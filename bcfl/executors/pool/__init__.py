"""Clients distributed over processes of one thread each.

Each worker runs the sequential executor; data are shared through one memory-mapped file.
"""
