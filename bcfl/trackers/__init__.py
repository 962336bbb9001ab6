"""Trackers: which association hypotheses are followed, kept and merged."""

from bcfl.trackers.adaptive import AdaptiveMultiHypothesis
from bcfl.trackers.consensus import Consensus
from bcfl.trackers.multi_hypothesis import Exact, Greedy, MultiHypothesis
from bcfl.trackers.tracker import Tracker, TrackerInfo

__all__ = [
    "AdaptiveMultiHypothesis",
    "Consensus",
    "Exact",
    "Greedy",
    "MultiHypothesis",
    "Tracker",
    "TrackerInfo",
]
