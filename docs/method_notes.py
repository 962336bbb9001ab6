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


ONE = "One training and one model each way."
SCORED = "K models down and scored, one training, one model up."
POSTERIOR = "K models down and scored, one training, a mean and a precision per parameter up."
UPDATES = "One training and one model each way; the server compares updates pair by pair."
CONTINUAL = "FedProx's, plus the terms of the local objective."
SUPPORT = "Each device scores the models of other clusters, and trains those that it supports."

NOTES = {
    "fedavg": Note(ONE, "The baseline where clients are alike."),
    "fedprox": Note(ONE, "As `fedavg`, with long or uneven local training."),
    "local": Note("One training, nothing shared.", "A lower reference: what does sharing gain?"),
    "centralised": Note("The server holds all samples.", "An upper reference for alike clients."),
    "centralised-groups": Note(
        "The server holds all samples.", "An upper reference where the true groups are known."
    ),
    "fedavg-plus": Note("K trainings and K models each way.", "Is a gain due to K networks alone?"),
    "fedprox-plus": Note("K trainings and K models each way.", "As `fedavg-plus`, by FedProx."),
    "ifca": Note(SCORED, "Clear groups and a known K; start it several times, or add `-w`."),
    "fesem": Note(ONE, "Groups that show in the parameters, at the cost of `fedavg`."),
    "wecfl": Note(ONE, "As `fesem`, with clients of unequal size. A strong and cheap baseline."),
    "bcfl-g": Note(POSTERIOR, "Posteriors of the networks at IFCA's cost."),
    "bcfl-c": Note(
        "As `bcfl-g`, but up to M trainings where associations differ.",
        "To average over the M best associations in every round.",
    ),
    "bcfl-mh": Note(
        "Up to M hypotheses with K models each.", "The literal multi-hypothesis tracker."
    ),
    "bcfl-histories": Note(
        "As `bcfl-mh`.", "Filtering over rounds: evidence accumulates, as in target tracking."
    ),
    "bcfl-forget": Note(POSTERIOR, "Data that change over time, above all concepts that return."),
    "bcfl-asym": Note(POSTERIOR, "Clusters that gain from clients of others, but not vice versa."),
    "bcfl-exact": Note("K to the number of clients hypotheses.", "A reference on tiny problems."),
    "bcfl-mht": Note(
        "As `bcfl-g` once hypotheses agree; more while several compete.",
        "Unknown starts, or an unknown number of clusters (`num_clusters='auto'`).",
    ),
    "bcfl-race": Note(
        "2 to 4 times the trainings of `bcfl-g` at four starts.",
        "To know who belongs together, and how sure that is; above all with few samples.",
    ),
    "fedsoft": Note(SCORED, "Clients whose data are mixtures of several distributions."),
    "feddrift": Note("Models of all clusters down and scored.", "Concept drift, K unknown."),
    "ewc": Note(CONTINUAL, "A continual baseline against forgetting."),
    "ssgd": Note(CONTINUAL, "A continual baseline by flat minima."),
    "apd": Note(CONTINUAL, "A continual baseline with parameters of each client."),
    "fedweit": Note(
        CONTINUAL + " Sparse weights of all clients are sent.",
        "A continual baseline where clients attend to others' weights.",
    ),
    "faacl": Note(SUPPORT, "Asymmetric support: A's data help B, B's do not help A. K unknown."),
    "faacl-h": Note(SUPPORT, "As `faacl`, with a hierarchy of merges."),
    "c-faacl": Note(SUPPORT, "As `faacl`, with data that change over time."),
    "ocfl-hdbscan": Note(UPDATES, "One-shot clustering with K unknown, clusters of any density."),
    "ocfl-meanshift": Note(UPDATES, "One-shot clustering with K unknown, by modes of the density."),
    "ocfl-affinity": Note(UPDATES, "One-shot clustering with K unknown, by exemplars."),
    "ocfl-kmeans": Note(UPDATES, "One-shot clustering with K known."),
    "scl": Note(UPDATES, "Clusters found by recursive bipartition, K unknown."),
    "bcl": Note(UPDATES, "One hierarchical clustering at a fixed round, K by a threshold."),
    "fedgroup": Note(UPDATES, "Clustering at the start, newcomers are assigned later."),
}
