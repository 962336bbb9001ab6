"""Tables and figures of the papers as data, run again and set beside what the papers print.

One TOML file per table, in a folder per paper; `docs/reproducing.md` says how one is written. How a
single method is run is in `experiments.runs`.
"""
