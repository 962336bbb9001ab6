"""Training batched over models on a GPU: CUDA graphs and Triton kernels.

Training steps and networks only; scoring is shared with `stacked`.
"""
