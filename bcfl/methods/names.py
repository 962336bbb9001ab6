"""From a name on the command line to a method."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from bcfl.methods import bayesian, continual, decorators, point, support, updates
from bcfl.methods.settings import Settings
from bcfl.rounds.method import Method

Recipe = Callable[[Settings], Method]
NumberedRecipe = Callable[[Settings, int], Method]
Decorator = Callable[[Method, Settings], Method]


class UnknownMethodError(ValueError):
    """A name that no recipe has."""


PLAIN: Mapping[str, Recipe] = {
    "fedavg": point.fedavg,
    "fedprox": point.fedprox,
    "local": point.local,
    "centralised": point.centralised,
    "fedavg-plus": point.fedavg_plus,
    "fedprox-plus": point.fedprox_plus,
    "ifca": point.ifca,
    "fesem": point.fesem,
    "wecfl": point.wecfl,
    "ocfl-hdbscan": updates.ocfl_hdbscan,
    "ocfl-meanshift": updates.ocfl_meanshift,
    "ocfl-affinity": updates.ocfl_affinity,
    "ocfl-kmeans": updates.ocfl_kmeans,
    "scl": updates.scl,
    "bcl": updates.bcl,
    "fedgroup": updates.fedgroup,
    "faacl": support.faacl,
    "faacl-h": support.faacl_hierarchical,
    "c-faacl": support.continual_faacl,
    "fedsoft": continual.fedsoft,
    "feddrift": continual.feddrift,
    "ewc": continual.ewc,
    "ssgd": continual.ssgd,
    "apd": continual.apd,
    "fedweit": continual.fedweit,
    "bcfl-g": bayesian.bcfl_g,
    "bcfl-forget": bayesian.bcfl_forget,
    "bcfl-asym": support.bcfl_asymmetric,
    "bcfl-exact": bayesian.bcfl_exact,
}
NUMBERED: Mapping[str, NumberedRecipe] = {
    "bcfl-c": bayesian.bcfl_c,
    "bcfl-mh": bayesian.bcfl_mh,
    "bcfl-mht": bayesian.bcfl_mht,
}
SUFFIXES: Mapping[str, Decorator] = {
    "con-para": decorators.with_contrast_of_parameters,
    "con-rep": decorators.with_contrast_of_outputs,
    "con-cks": decorators.with_contrast_and_sharing,
    "cks": decorators.with_sharing,
    "cam": decorators.with_additive_model,
    "w": decorators.with_warm_up,
    "finetune": decorators.with_finetuning,
}
"""In the order in which they are applied, whatever their order in a name."""
EXCLUSIVE: Mapping[str, str] = {
    "con-para": "contrast",
    "con-rep": "contrast",
    "con-cks": "contrast",
    "cks": "sharing",
    "cam": "warm-up",
    "w": "warm-up",
    "finetune": "finetune",
}
"""Of suffixes that bring the same thing a name may hold one; con-cks brings sharing too."""
DESCRIPTIONS: Mapping[str, str] = {
    "fedavg": "one model for all clients",
    "fedprox": "FedAvg with local models held near the common one",
    "local": "every client trains alone",
    "centralised": "all samples in one place: a bound, not a federation",
    "fedavg-plus": "K FedAvg models, logits averaged",
    "fedprox-plus": "K FedProx models, logits averaged",
    "ifca": "each client joins the cluster of lowest loss",
    "fesem": "K-means on local models",
    "wecfl": "K-means on local models, weighted by samples",
    "ocfl-hdbscan": "HDBSCAN on updates at the first rise of the temperature",
    "ocfl-meanshift": "the same with mean shift",
    "ocfl-affinity": "the same with affinity propagation",
    "ocfl-kmeans": "the same with K-means",
    "scl": "clusters whose mean update is short are split in two",
    "bcl": "agglomerative clustering of updates at a fixed round",
    "fedgroup": "K-means on decomposed cosines of a cold start",
    "faacl": "clusters that support each other merge; supporters train along",
    "faacl-h": "FAACL whose clusters meet level by level",
    "c-faacl": "FAACL in which devices look for the concept of new data",
    "fedsoft": "each client feeds all clusters, by how often they are best",
    "feddrift": "one cluster per client at first, merged where alike",
    "ewc": "FedProx that holds on to what earlier time steps needed",
    "ssgd": "FedProx with dropout, small batches and a falling learning rate",
    "fedweit": "as apd with masked uploads, and attention to others' sparse weights",
    "apd": "FedProx on shared weights, with masks and sparse weights of one's own",
    "bcfl-g": "best association by weight, Laplace posteriors",
    "bcfl-c-M": "the M best associations, merged after each round",
    "bcfl-mh-M": "the M most probable histories of associations",
    "bcfl-mht-M": "up to M hypotheses that differ, split proposals, adaptive",
    "bcfl-forget": "BCFL-G with priors that fade, for data that change",
    "bcfl-asym": "bcfl-g whose clusters borrow from clients of others, by evidence",
    "bcfl-exact": "all associations; tiny problems only",
}
SUFFIX_DESCRIPTIONS: Mapping[str, str] = {
    "-con-para": "contrast between the clusters' classifiers",
    "-con-rep": "contrast between the clusters' outputs",
    "-cks": "pulls all but the classifier towards the mean model",
    "-con-cks": "contrast on the classifier, pull on the rest",
    "-cam": "adds a network that all clusters share",
    "-w": "rounds of K-means on local models first",
    "-finetune": "clients train on before the last test",
}


def build(name: str, settings: Settings | None = None) -> Method:
    """The method of a name, such as `wecfl`, `bcfl-mh-6`, `bcfl-g-w` or `ifca-cam-finetune`.

    Raises:
        UnknownMethodError: no recipe has the name; the message suggests the nearest.
        ValueError: the number in the name is not at least 1, or suffixes do not go together.
    """
    chosen = settings or Settings()
    base, suffixes = parsed(name)
    method = replace(_recipe(base, name)(chosen), name=base)
    for suffix, decorate in SUFFIXES.items():
        if suffix in suffixes:
            method = decorate(method, chosen)
    held_out = max(method.validation, chosen.calibration)
    return replace(method, name=name, validation=held_out)


def parsed(name: str) -> tuple[str, tuple[str, ...]]:
    """The base of a name and its suffixes, in the order of the name.

    Raises:
        ValueError: a suffix is there twice, or two that bring the same.
    """
    base, suffixes = name, list[str]()
    while True:
        found = next((s for s in SUFFIXES if base.endswith(f"-{s}") and base not in PLAIN), None)
        if found is None:
            break
        base = base.removesuffix(f"-{found}")
        suffixes.insert(0, found)
    brought = [EXCLUSIVE[suffix] for suffix in suffixes]
    brought += ["sharing"] * suffixes.count("con-cks")
    twice = sorted({one for one in brought if brought.count(one) > 1})
    if twice:
        raise ValueError(f"method {name!r} asks for {twice[0]} twice: {', '.join(suffixes)}")
    return base, tuple(suffixes)


def _recipe(base: str, name: str) -> Recipe:
    if base in PLAIN:
        return PLAIN[base]
    numbered = re.fullmatch(r"(.+)-(\d+)", base)
    if numbered and numbered[1] in NUMBERED:
        recipe, number = NUMBERED[numbered[1]], int(numbered[2])
        return lambda settings: recipe(settings, number)
    known = [*PLAIN, *(f"{stem}-{number}" for stem in NUMBERED for number in (3, 6))]
    near = get_close_matches(base, known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0] + name[len(base) :]!r}?" if near else ""
    raise UnknownMethodError(f"unknown method {name!r}.{hint} All: bcfl list methods")
