"""Methods of clustered federated learning by name, and suffixes that modify them.

Start here:

- `bcfl.methods.available()` lists the names.
- `bcfl.methods.build("ifca", num_clusters=3)` makes a method by its name.
- `bcfl.methods.ifca(num_clusters=3)` makes the same; `help(bcfl.methods.ifca)` lists the options.
- `bcfl.methods.build("ifca-cam")` adds a suffix, as `bcfl.methods.with_additive_model(method)`.
- `bcfl.methods.RECIPES["ifca"]` has the paper, description and options as data, and
  `bcfl.methods.COMBINATORS` those of suffixes.

Where a default was measured, its option names the page of the documentation, such as
`studies/trackers`, and the section. Nothing here needs torch before a method is made.
"""

from bcfl.methods.baselines import (
    centralised,
    centralised_groups,
    fedavg,
    fedavg_plus,
    fedprox,
    fedprox_plus,
    fesem,
    ifca,
    local,
    wecfl,
)
from bcfl.methods.bayesian import (
    bcfl_asymmetric,
    bcfl_c,
    bcfl_exact,
    bcfl_forget,
    bcfl_g,
    bcfl_histories,
    bcfl_mh,
)
from bcfl.methods.choices import Move
from bcfl.methods.combinators import (
    with_additive_model,
    with_contrast,
    with_contrast_and_sharing,
    with_finetuning,
    with_output_contrast,
    with_sharing,
    with_warm_up,
)
from bcfl.methods.continual import apd, ewc, feddrift, fedsoft, fedweit, ssgd
from bcfl.methods.ensembles import ensemble
from bcfl.methods.names import (
    DEFAULT,
    NamedEnsemble,
    NamedMethod,
    UnknownMethodError,
    applicable,
    available,
    build,
    named,
)
from bcfl.methods.options import NOTHING, OBJECTIVE, Option, UnknownOptionError, typed
from bcfl.methods.own import (
    OwnCodeError,
    UnknownObjectError,
    imported,
    keywords,
    made_by,
    misfit,
    reference_of,
    registered,
)
from bcfl.methods.racing import bcfl_race
from bcfl.methods.registry import COMBINATORS, RECIPES, Combinator, Recipe
from bcfl.methods.server import with_median, with_server_optimizer, with_trimmed_mean
from bcfl.methods.support import continual_faacl, faacl, faacl_hierarchical
from bcfl.methods.tracking import bcfl_mht
from bcfl.methods.updates import (
    bcl,
    fedgroup,
    ocfl_affinity,
    ocfl_hdbscan,
    ocfl_kmeans,
    ocfl_meanshift,
    scl,
)

__all__ = [
    "COMBINATORS",
    "DEFAULT",
    "NOTHING",
    "OBJECTIVE",
    "RECIPES",
    "Combinator",
    "Move",
    "NamedEnsemble",
    "NamedMethod",
    "Option",
    "OwnCodeError",
    "Recipe",
    "UnknownMethodError",
    "UnknownObjectError",
    "UnknownOptionError",
    "apd",
    "applicable",
    "available",
    "bcfl_asymmetric",
    "bcfl_c",
    "bcfl_exact",
    "bcfl_forget",
    "bcfl_g",
    "bcfl_histories",
    "bcfl_mh",
    "bcfl_mht",
    "bcfl_race",
    "bcl",
    "build",
    "centralised",
    "centralised_groups",
    "continual_faacl",
    "ensemble",
    "ewc",
    "faacl",
    "faacl_hierarchical",
    "fedavg",
    "fedavg_plus",
    "feddrift",
    "fedgroup",
    "fedprox",
    "fedprox_plus",
    "fedsoft",
    "fedweit",
    "fesem",
    "ifca",
    "imported",
    "keywords",
    "local",
    "made_by",
    "misfit",
    "named",
    "ocfl_affinity",
    "ocfl_hdbscan",
    "ocfl_kmeans",
    "ocfl_meanshift",
    "reference_of",
    "registered",
    "scl",
    "ssgd",
    "typed",
    "wecfl",
    "with_additive_model",
    "with_contrast",
    "with_contrast_and_sharing",
    "with_finetuning",
    "with_median",
    "with_output_contrast",
    "with_server_optimizer",
    "with_sharing",
    "with_trimmed_mean",
    "with_warm_up",
]


def __dir__() -> list[str]:
    return __all__
