"""Policies that change another policy: warm-up, freezing, partial moves.

Each holds the inner policy and follows the same protocol.
"""
