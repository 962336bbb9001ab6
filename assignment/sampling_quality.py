"""How much a Markov chain's draws are worth, and whether several chains agree."""

import numpy as np

from assignment.arrays import FloatArray


def effective_sample_size(draws: FloatArray) -> float:
    """Number of independent draws that dependent ones are worth, of the worst quantity.

    Autocorrelations are averaged over chains and summed in pairs up to the first negative pair
    (Geyer, 1992; Vehtari et al., 2021, equations 10 to 13).

    Args:
        draws: float64 of shape (draws, chains, quantities).

    Returns:
        Effective number of draws over all chains; a quantity that never changes is left out, and
        the result is the plain number of draws if none does.
    """
    steps, chains, _ = draws.shape
    within = draws.var(axis=0, ddof=1).mean(axis=0)
    between = draws.mean(axis=0).var(axis=0, ddof=1) if chains > 1 else np.zeros_like(within)
    total = within * (steps - 1) / steps + between
    varying = total > 0
    if not varying.any():
        return float(steps * chains)
    centred = draws[..., varying] - draws[..., varying].mean(axis=0)
    spectrum = np.abs(np.fft.rfft(centred, n=2 * steps, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, axis=0)[:steps].mean(axis=1) / steps
    lag_one = covariance[:1] * steps / (steps - 1)
    correlation = 1.0 - (lag_one - covariance) / total[varying]
    pairs = correlation[: steps // 2 * 2].reshape(steps // 2, 2, -1).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(pairs, axis=0)
    time = np.maximum(2.0 * (positive * monotone).sum(axis=0) - 1.0, 1.0 / np.log10(steps * chains))
    return float((steps * chains / time).min())


def potential_scale_reduction(draws: FloatArray) -> float:
    """Largest ratio of pooled to within-chain spread, chains split in half (1: all agree).

    Args:
        draws: float64 of shape (draws, chains, quantities).

    Returns:
        Gelman and Rubin's (1992) statistic of the worst quantity; infinite where chains are stuck
        at different values.
    """
    half = len(draws) // 2
    split = np.concatenate([draws[:half], draws[half : 2 * half]], axis=1)
    within = split.var(axis=0, ddof=1).mean(axis=0)
    between = split.mean(axis=0).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1) / half + between / within)
    return float(np.where(between > 0, ratio, 1.0).max())
