import itertools

import numpy as np
import pytest

import assignment
from experiments.examples import crossing_targets as example


@pytest.mark.parametrize("seed", [0, 1])
def test_both_trackers_stay_with_the_targets(seed):
    truth, measured = example.scans(seed)
    positions, masses = example.mht(measured)
    assert example.error(example.jpda(measured), truth) < 1.0
    assert example.error(positions, truth) < 1.0
    assert 0.5 < min(masses) <= max(masses) <= 1.0


def test_marginals_are_those_of_all_joint_events():
    """Enumerates who took which measurement, with probabilities written out (Bar-Shalom)."""
    measurements = np.array([[-8.0, -1.5], [-7.5, 1.5], [-8.1, -1.7], [3.0, 4.0]])
    tracks = tuple(track.predicted() for track in example.start_tracks())
    densities = np.exp([track.log_density(measurements) for track in tracks])
    expected, total = np.zeros((4, 2)), 0.0
    for events in itertools.product(range(-1, 4), repeat=2):
        if events[0] == events[1] != -1:
            continue
        weight = 1.0
        for target, event in enumerate(events):
            detected = example.DETECTION * densities[target, event] / example.CLUTTER
            weight *= 1 - example.DETECTION if event < 0 else detected
        total += weight
        for target, event in enumerate(events):
            if event >= 0:
                expected[event, target] += weight
    costs = example.costs_of(tracks, measurements)
    found = assignment.association_marginals(costs, upper=example.AT_MOST_ONE)
    np.testing.assert_allclose(found.probabilities[:, :2], expected / total, rtol=1e-10)


def test_a_certain_measurement_gives_the_kalman_update():
    track = example.start_tracks()[0].predicted()
    measurement = np.array([[-7.0, -1.0]])
    updated = track.updated(measurement, np.ones(1))
    information = np.linalg.inv(track.covariance)
    information[:2, :2] += np.eye(2) / example.NOISE**2
    np.testing.assert_allclose(updated.covariance, np.linalg.inv(information), rtol=1e-9)
    shift = np.append(measurement[0] - track.mean[:2], [0.0, 0.0]) / example.NOISE**2
    expected = track.mean + updated.covariance @ shift
    np.testing.assert_allclose(updated.mean, expected, rtol=1e-9)


def test_it_prints_what_it_found(capsys):
    example.main(0)
    assert "JPDA: error" in capsys.readouterr().out
