"""Policies that wrap another policy: warm-up, freezing, partial steps.

Each holds the inner policy and follows the same protocol.
"""
