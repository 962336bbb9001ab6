"""Many models at once: batched matrix products and grouped convolutions.

Same results as `sequential`, beyond rounding.
"""
