"""Methods by name. Each recipe is a choice of policy, tracker, aggregation and prediction.

| name | association | hypotheses | posteriors |
|---|---|---|---|
| fedavg, fedprox | one cluster | 1 | flat |
| local, centralised | one cluster per client; all samples in one place | 1 | flat |
| fedavg-plus, fedprox-plus | everybody in all clusters | 1 | flat |
| ifca | lowest loss | 1 | flat |
| fesem, wecfl | K-means on local models | 1 | flat |
| ocfl-hdbscan, -meanshift, -affinity, -kmeans | directions of updates, once | 1 | flat |
| bcl, scl | directions of updates, at a fixed round; split in two again and again | 1 | flat |
| fedgroup | directions of updates in a cold start | 1 | flat |
| fedsoft | all clusters, by how often each is best | 1 | flat |
| feddrift | lowest loss; clusters merge and open | 1 | flat |
| ewc, ssgd | one cluster | 1 | flat |
| apd, fedweit | one cluster per client, some weights shared | 1 | flat |
| faacl, faacl-h | each client alone, then support tests and mutual merges | 1 | flat |
| c-faacl | the same; in later time steps devices search for the concept of their data | 1 | flat |
| bcfl-asym | as bcfl-g; clusters borrow from clients of others | 1 | Laplace |
| bcfl-g | log association weight | 1 | Laplace |
| bcfl-c-M | M best, merged | 1 | Laplace |
| bcfl-mh-M | M best of each hypothesis | M | Laplace |
| bcfl-mht-M | M best of each hypothesis, and proposals | at most M that differ | Laplace |
| bcfl-exact | all | all | Laplace |

Suffixes change any of them: `-con-para`, `-con-rep`, `-cks`, `-con-cks`, `-cam`, `-w`, `-finetune`.
"""

from bcfl.methods.names import (
    DESCRIPTIONS,
    NUMBERED,
    PLAIN,
    SUFFIX_DESCRIPTIONS,
    SUFFIXES,
    UnknownMethodError,
    build,
)
from bcfl.methods.settings import Move, Settings

__all__ = [
    "DESCRIPTIONS",
    "NUMBERED",
    "PLAIN",
    "SUFFIXES",
    "SUFFIX_DESCRIPTIONS",
    "Move",
    "Settings",
    "UnknownMethodError",
    "build",
]
