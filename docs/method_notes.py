"""What a round of each method costs, and when to use it; one note per recipe of the registry."""

from typing import NamedTuple


class Note(NamedTuple):
    """Cost and use of a method.

    Attributes:
        cost: work of a round for each client, and what is sent.
        use: one sentence.
    """

    cost: str
    use: str


ONE = "One training; one model is sent each way."
SCORED = "A client receives K models, scores them, trains one and sends it."
POSTERIOR = "A client receives K models, scores them, trains one and sends its mean and precision."
UPDATES = (
    "One training, one model each way; the server compares the updates of all pairs of clients."
)
CONTINUAL = "That of FedProx, and the terms of the local objective."
SUPPORT = "Each client scores the models of other clusters, and trains those that it supports."
POOLED = "None of a federation: the server holds all samples."

NOTES = {
    "fedavg": Note(ONE, "The baseline, and sufficient if clients are alike."),
    "fedprox": Note(ONE, "Like `fedavg`, for long or uneven local training."),
    "local": Note(
        "One training; nothing is shared.", "A lower reference: what is gained by sharing?"
    ),
    "centralised": Note(POOLED, "An upper reference if clients are alike."),
    "centralised-groups": Note(POOLED, "An upper reference if the true groups are known."),
    "fedavg-plus": Note(
        "K trainings; K models are sent each way.", "Is a gain due to having K networks alone?"
    ),
    "fedprox-plus": Note(
        "K trainings; K models are sent each way.", "Like `fedavg-plus`, with FedProx."
    ),
    "ifca": Note(
        SCORED, "Distinct groups and a known K; run it from several starts, or with `-w`."
    ),
    "fesem": Note(ONE, "Groups that are visible in the parameters, at the cost of `fedavg`."),
    "wecfl": Note(ONE, "Like `fesem`, for clients of unequal size. A strong baseline of low cost."),
    "bcfl-g": Note(POSTERIOR, "Posteriors of the networks, at the number of trainings of IFCA."),
    "bcfl-c": Note(
        "That of `bcfl-g`, with up to M trainings where associations differ.",
        "To average over the M best associations in every round.",
    ),
    "bcfl-mh": Note(
        "Up to M hypotheses with K models each.",
        "The multi-hypothesis tracker as published. `bcfl-mht` explores more.",
    ),
    "bcfl-histories": Note(
        "That of `bcfl-mh`.",
        "Filtering over rounds: evidence accumulates, as in target tracking.",
    ),
    "bcfl-forget": Note(POSTERIOR, "Data that change over time, above all recurring concepts."),
    "bcfl-asym": Note(
        POSTERIOR, "Clusters that gain from the clients of others, but not vice versa."
    ),
    "bcfl-exact": Note(
        "Up to K^C hypotheses for C clients.", "An exact reference for tiny problems."
    ),
    "bcfl-mht": Note(
        "That of `bcfl-g` once hypotheses agree; more while several compete.",
        "An unknown number of clusters (`num_clusters='auto'`), or starts that may be poor.",
    ),
    "bcfl-race": Note(
        "Two to four times the trainings of `bcfl-g` with four starts.",
        "The default method (with M = 4). To find which clients belong together, and how "
        "certainly, above all with few samples.",
    ),
    "fedsoft": Note(SCORED, "Clients whose data are mixtures of several distributions."),
    "feddrift": Note(
        "A client receives and scores the models of all clusters, and trains one or more.",
        "Concept drift with unknown K.",
    ),
    "ewc": Note(CONTINUAL, "A continual-learning baseline against forgetting."),
    "ssgd": Note(CONTINUAL, "A continual-learning baseline that seeks flat minima."),
    "apd": Note(CONTINUAL, "A continual-learning baseline with parameters for each client."),
    "fedweit": Note(
        CONTINUAL + " Clients receive sparse weights of other clients.",
        "A continual-learning baseline in which clients use the weights of others.",
    ),
    "faacl": Note(
        SUPPORT, "Asymmetric support: data of A help B, but not vice versa. K is unknown."
    ),
    "faacl-h": Note(SUPPORT, "Like `faacl`, with a hierarchy of merges."),
    "c-faacl": Note(SUPPORT, "Like `faacl`, for data that change over time."),
    "ocfl-hdbscan": Note(
        UPDATES, "One-shot clustering with unknown K and clusters of any density."
    ),
    "ocfl-meanshift": Note(
        UPDATES, "One-shot clustering with unknown K, by the modes of the density."
    ),
    "ocfl-affinity": Note(UPDATES, "One-shot clustering with unknown K, by exemplars."),
    "ocfl-kmeans": Note(UPDATES, "One-shot clustering with known K."),
    "scl": Note(UPDATES, "Recursive bipartition with unknown K."),
    "bcl": Note(
        UPDATES, "One hierarchical clustering in a fixed round; K follows from a threshold."
    ),
    "fedgroup": Note(
        UPDATES, "Clustering at the start of training; new clients are assigned later."
    ),
}
