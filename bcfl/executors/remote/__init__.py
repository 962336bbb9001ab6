"""An executor that sends messages to clients elsewhere, and what answers them there.

Independent of any transport: `Grid` is the interface of one.
"""
