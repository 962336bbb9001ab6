"""Searches that rank associations: free sizes, bounded sizes, one to one.

`assignment.solvers` chooses among them by name.
"""
