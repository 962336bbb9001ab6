"""The order of the API reference: public modules by part, and names of a module by subject."""

PARTS = {
    "Start here": ("bcfl", "bcfl.methods", "bcfl.data", "bcfl.architecture"),
    "Results of a run": (
        "bcfl.analysis",
        "bcfl.analysis.metrics",
        "bcfl.analysis.uncertainty",
        "bcfl.analysis.selection",
        "bcfl.analysis.pairs",
        "bcfl.analysis.rows",
        "bcfl.analysis.loggers",
        "bcfl.hypotheses",
        "bcfl.drawing",
    ),
    "Your own methods": (
        "bcfl.policies",
        "bcfl.trackers",
        "bcfl.protocol",
        "bcfl.aggregation",
    ),
    "How rounds are run": (
        "bcfl.rounds",
        "bcfl.rounds.checkpoint",
        "bcfl.executors",
        "bcfl.flower",
        "bcfl.runtime",
    ),
    "Libraries of their own": (
        "assignment",
        "posteriors",
        "posteriors.local",
        "posteriors.predictive",
    ),
    "The application": (
        "experiments",
        "experiments.datasets",
        "experiments.partitions",
        "experiments.models",
    ),
}

SUBJECTS = {
    "bcfl": {
        "A federation": "Federation ClientData Model Objective Privacy methods",
        "Results of a run": "Run Prediction analysis",
        "The posterior over associations": "HypothesisSet Hypothesis Association",
        "Details of data, models and predictions": "View BlockSpec PredictionRule",
        "Your own methods": "Method policies trackers Aggregation drive",
        "Rounds": "FederationState RoundRecord checkpoint executors",
    },
    "bcfl.methods": {
        "Methods by name": "build DEFAULT RECIPES COMBINATORS Recipe Combinator Option named",
        "Probabilistic association": (
            "bcfl_race bcfl_mht bcfl_g bcfl_c bcfl_mh bcfl_histories bcfl_forget bcfl_asymmetric "
            "bcfl_exact"
        ),
        "Clustered federated learning": (
            "ifca fesem wecfl scl bcl fedgroup ocfl_hdbscan ocfl_meanshift ocfl_affinity "
            "ocfl_kmeans faacl faacl_hierarchical fedsoft"
        ),
        "Data that change": "continual_faacl feddrift ewc ssgd apd fedweit",
        "One model, or one for each client": (
            "fedavg fedprox fedavg_plus fedprox_plus local centralised centralised_groups"
        ),
        "Additions to a method": (
            "with_additive_model with_finetuning with_warm_up with_contrast with_output_contrast "
            "with_sharing with_contrast_and_sharing with_server_optimizer with_median "
            "with_trimmed_mean ensemble"
        ),
    },
    "bcfl.analysis": {
        "Runs and predictions": "Run Prediction ValuePrediction score_values",
        "Figures": (
            "plot_association_graph plot_cluster_sizes plot_hypothesis_weights "
            "plot_uncertain_clients plot_reliability plot_association_reliability"
        ),
        "Graphs": (
            "association_graph client_cluster_graph hypothesis_tree support_graph "
            "accumulated_association_graph write_graphs"
        ),
    },
    "bcfl.policies": {
        "Writing a policy": (
            "Policy RoundContext Ranking ranked Candidate candidate Costs Origin Continue Given"
        ),
        "By likelihood or evidence": (
            "LikelihoodAssociation AssociationPrior AsymmetricBCFL ClusterSize FedSoft FedDrift"
        ),
        "By trained models or updates": (
            "KMeansAssociation OneShotClustering HDBSCANClustering MeanShiftClustering "
            "AffinityClustering KMeansClustering AgglomerativeClustering RecursiveBipartition "
            "FedGroup"
        ),
        "By tests of support": "FAACL ContinualFAACL",
        "Without association": (
            "FedAvg LocalTraining Centralised Ensemble EWC StableSGD APD FedWeIT"
        ),
        "Around other policies": "WarmUp Frozen Partial SideBySide LocalFirst SharedFirst",
    },
    "bcfl.trackers": {
        "Trackers": ("Greedy Consensus MultiHypothesis AdaptiveMultiHypothesis RacingStarts Exact"),
        "Proposals and pruning": (
            "Proposal SplitAndFree Birth Death Merge NearCopies NScan AncestorQuota"
        ),
        "Writing a tracker": "Tracker TrackerInfo Successor expand train follow",
    },
    "bcfl.protocol": {
        "Training": "Objective Train Trained Upload Steps",
        "Penalties of local training": (
            "Regularizer Proximal Attraction Contrast Sharing Consolidation Sparsity Retention"
        ),
        "Scoring": "Score Statistic Loss LossSum loss_matrix Evidence EvidenceSum",
        "Further statistics": (
            "BestCounts BestModels Features HeldOutLosses PairedSupport SampleFit SupportTest"
        ),
        "Predictions": "PredictionRule Predictions PredictionSums LabelSums",
        "Exchanges": "Exchange Request Replies Result Describe ClientInfo Failure together",
    },
    "assignment": {
        "Ranking associations": (
            "best_assignment m_best_assignments iter_assignments m_best_assignments_batch "
            "m_best_over_parents iter_over_parents merge_rankings"
        ),
        "Probabilities": "association_marginals log_partition AssociationMarginals",
        "Costs": "validate_costs gate",
        "Weights of hypotheses": (
            "normalise prune cap effective_number log_captured_mass pseudo_bma_weights exact_sum"
        ),
        "Results": ("Assignment RankedAssignments RankedBatch ChildAssignment RankedChildren"),
    },
    "posteriors": {
        "Gaussians": "DiagonalGaussian fuse fuse_without Fused merge merge_by kl carry",
        "Local posteriors": (
            "LOCAL_POSTERIORS local_posterior_fit LocalPosteriorFit LocalFit LocalPosterior "
            "find_mode Mode"
        ),
        "Predictions": (
            "Predictive PlugIn MonteCarlo Linearised predict_mixture MixturePrediction "
            "split_entropy EntropySplit split_by_group GroupedSplit"
        ),
        "Evidence": (
            "log_association_weight quadratic_log_evidence importance_log_evidence "
            "monte_carlo_log_evidence EvidenceEstimate"
        ),
        "Curvature and networks": (
            "diagonal_curvature gauss_newton_matrix network_log_likelihood pool_running_statistics"
        ),
        "Pyro": "to_pyro mixture_to_pyro network_program",
    },
    "experiments": {"Runs": "report save open", "Modules": "datasets partitions models"},
}
"""Names in the order of the page; those that are not listed follow by kind."""
