"""Searches that rank associations: free sizes, bounded sizes, one to one; merged rankings.

`assignment.solvers` chooses among them by name.
"""
