#!/bin/sh
# Executors on a GPU, from a checkout with torch installed; arguments go to gpu_check.py.
cd "$(dirname "$0")/../.." && exec python -m tests.bench.gpu_check "$@"
