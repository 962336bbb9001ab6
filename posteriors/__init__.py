"""Gaussian posteriors over network parameters: fit, fuse, merge, weigh.

gaussian     `DiagonalGaussian`, the posterior over a flat parameter vector
divergence   Kullback-Leibler and Bhattacharyya divergences between posteriors
fusion       `fuse`: local posteriors of one model -> its server posterior
memory       `carry` and sites: what the next round's prior remembers
merge        `merge`: a mixture of posteriors -> one posterior
batchnorm    `pool_running_statistics`: buffers, which have no posterior
curvature    `diagonal_curvature`: exact diagonal Gauss-Newton matrix or empirical Fisher
evidence     log association weights and quadratic log evidence
entropy      `split_entropy`: uncertainty due to data and due to not knowing the model

It knows nothing of clusters or clients.
"""
