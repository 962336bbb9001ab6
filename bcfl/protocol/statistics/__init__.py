"""What a client may be asked to report of models on its samples: one frozen class per file.

`statistic` says what each of them must define, `sample_values` what networks' outputs become per
sample. How they are asked is in `bcfl.protocol.requests`, who computes them in `bcfl.executors`.
"""
