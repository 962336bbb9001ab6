"""Trackers: which association hypotheses are followed, proposed, kept and merged.

How one hypothesis ranks its successors is in `bcfl.policies`.
"""

from bcfl.trackers.adaptive import AdaptiveMultiHypothesis
from bcfl.trackers.consensus import Consensus
from bcfl.trackers.multi_hypothesis import Exact, Greedy, MultiHypothesis
from bcfl.trackers.near_copies import NearCopies
from bcfl.trackers.proposals import Birth, Death, Merge, Proposal, SplitAndFree
from bcfl.trackers.racing import RacingStarts
from bcfl.trackers.successors import Successor, expand, follow, log_captured_mass, train
from bcfl.trackers.survival import AncestorQuota, NScan
from bcfl.trackers.tracker import Tracker, TrackerInfo

__all__ = [
    "AdaptiveMultiHypothesis",
    "AncestorQuota",
    "Birth",
    "Consensus",
    "Death",
    "Exact",
    "Greedy",
    "Merge",
    "MultiHypothesis",
    "NScan",
    "NearCopies",
    "Proposal",
    "RacingStarts",
    "SplitAndFree",
    "Successor",
    "Tracker",
    "TrackerInfo",
    "expand",
    "follow",
    "log_captured_mass",
    "train",
]
