"""Samples of one client by view: train, validation, test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bcfl.data.arrays import class_list
from bcfl.data.class_names import common_names, fitting_names, named_labels
from bcfl.data.frames import named_columns, ordered_columns, without_frame
from bcfl.data.names import (
    TEST,
    TRAIN,
    VALIDATION,
    check_view_names,
    checked_group,
    checked_name,
)
from bcfl.data.sources import Columns, samples_of
from bcfl.data.view import View
from bcfl.runtime.arrays import featureless, pair_of
from bcfl.runtime.seeds import generator
from bcfl.runtime.suggestions import described

POOL = "(all samples)"
"""Name of the pseudo-client that holds all training samples in centralised methods."""
OF_OTHERS = (
    "; a torch Dataset or DataLoader, a data set of Hugging Face or a data frame: "
    "ClientData.from_dataset"
)
"""What to do about samples that are no pair of arrays."""


def pool_name(group: int | None) -> str:
    """Name of the pseudo-client that holds all training samples of a group; None is all groups."""
    return POOL if group is None else f"{POOL} of group {group}"


@dataclass(frozen=True, eq=False)
class ClientData:
    """The samples of one client, as views such as `train` and `test`.

    Attributes:
        client: stable name of the client, any text without control characters.
        views: samples by view; `train` is required and holds at least one sample. `test` and
            `validation` are optional, `train:1` holds what comes at the next time step, and so on;
            further views are for analysis, under any name that is not nearly one of these.
        group: true group, where known from a simulation, a whole number of 32 bits; used for
            analysis only.
        columns: names of the columns of the inputs, where a data frame or data set names them; all
            clients of a federation must have them in the same order.
        target_columns: names of the columns of the targets, where a data frame has them; all
            clients of a federation must have them in the same order.
        classes: labels of all classes, in the order of their numbers, where the targets were given
            as such labels, or are numbers that a data set has names for; all clients of a
            federation must have them in the same order.

    Raises:
        TypeError: the name is not a string, a view is not a `View`, or the group is not a whole
            number.
        ValueError: there are no training samples, inputs have no axis of features, samples of other
            views differ in size from those of training, the name holds characters that files
            cannot, the name of a view is nearly that of another or has no whole time step, or the
            group is out of range.

    Example:
        >>> import bcfl
        >>> data = bcfl.ClientData.from_arrays("ann", ([[0.0], [1.0], [2.0]], [0, 1, 1]))
        >>> data.num_samples
        {'train': 3}
        >>> data.views["train"].inputs.shape
        torch.Size([3, 1])
    """

    client: str
    views: Mapping[str, View]
    group: int | None = None
    columns: tuple[Any, ...] = ()
    target_columns: tuple[Any, ...] = field(default=(), kw_only=True)
    classes: tuple[Any, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "client", checked_name(self.client))
        object.__setattr__(self, "group", checked_group(self.client, self.group))
        for name in ("columns", "target_columns", "classes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not isinstance(self.views, Mapping):
            raise TypeError(
                f"client {self.client!r}: views must be a mapping from names to View, got "
                f"{described(self.views)}"
            )
        for name, view in self.views.items():
            if not isinstance(view, View):
                raise TypeError(
                    f"client {self.client!r}, view {name!r}: must be a View, got a "
                    f"{type(view).__name__}; see ClientData.from_arrays and from_dataset"
                )
        check_view_names(self.client, self.views)
        if not len(self.views[TRAIN]):
            raise ValueError(f"client {self.client!r} has no training samples")
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Samples have an axis of features, and those of all views one size, in any shape."""
        wanted = tuple(self.views[TRAIN].inputs.shape[1:])
        if not math.prod(wanted):
            raise ValueError(
                f"client {self.client!r}, view {TRAIN!r}: inputs must have at least one number in "
                f"each sample, got {wanted} per sample"
            )
        for name, view in sorted(self.views.items(), key=lambda item: item[0] != TRAIN):
            shape = tuple(view.inputs.shape[1:])
            if len(view) and not shape:
                told = featureless(view.inputs.shape, view.targets.shape)
                raise ValueError(f"client {self.client!r}, view {name!r}: {told}")
            if len(view) and math.prod(shape) != math.prod(wanted):
                raise ValueError(
                    f"client {self.client!r}, view {name!r}: inputs must have the shape of the "
                    f"training inputs, {wanted} per sample, got {shape}"
                )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(view)}" for name, view in self.views.items())
        group = "" if self.group is None else f", group {self.group}"
        return f"ClientData({self.client}: {sizes}{group})"

    @property
    def num_samples(self) -> dict[str, int]:
        """Number of samples by view."""
        return {name: len(view) for name, view in self.views.items()}

    def joined(self, names: Sequence[str]) -> View | None:
        """The samples of several views together; None if the client has none in any of them.

        Args:
            names: of the views; those that the client lacks are left out.

        Returns:
            The view; its samples are in the order of `names`.
        """
        views = [self.views[name] for name in names if len(self.views.get(name, ()))]
        if len(views) < 2:
            return views[0] if views else None
        inputs = torch.cat([view.inputs for view in views])
        return View(inputs, torch.cat([view.targets for view in views]))

    @classmethod
    def from_arrays(
        cls,
        client: str,
        train: tuple[ArrayLike | Tensor, ArrayLike | Tensor],
        test: tuple[ArrayLike | Tensor, ArrayLike | Tensor] | None = None,
        group: int | None = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> ClientData:
        """Build a client from copies of pairs of inputs and targets; see `bcfl.View.from_arrays`.

        Args:
            client: name of the client.
            train: training inputs (samples, ...), with at least one axis of features, and targets
                (samples,).
            test: test inputs and targets, if any; columns of data frames, of inputs and of targets,
                are put in the order of the training samples.
            group: true group, used for analysis only.
            classes: labels of all classes, in one order for all clients, where targets are such
                labels, for example text.

        Returns:
            The client, with the view `train` and, if given, `test`.

        Raises:
            TypeError: inputs and targets are not a pair, or are masked, complex or not numbers.
            ValueError: the client has no training samples, inputs and targets differ in length,
                inputs have no axis of features or are not finite, those of the test differ in size
                or names of columns, or a target is none of the classes.

        Example:
            >>> import bcfl
            >>> train, test = ([[0.0, 1.0], [1.0, 0.0]], [0, 1]), ([[1.0, 1.0]], [1])
            >>> bcfl.ClientData.from_arrays("ann", train, test, group=0)
            ClientData(ann: train 2, test 1, group 0)
        """
        client, views = checked_name(client), {}
        columns: list[tuple[Any, ...]] = [(), ()]
        for name, given in ((TRAIN, train), (TEST, test)):
            try:
                if given is not None:
                    inputs, targets = pair_of(given, "samples", "(inputs, targets)", OF_OTHERS)
                    if name == TRAIN:
                        columns = [named_columns(values) for values in (inputs, targets)]
                    x = without_frame(inputs, columns[0])
                    y = ordered_columns(targets, columns[1], "targets")
                    views[name] = View.from_arrays(x, y, classes)
            except (TypeError, ValueError) as error:
                raise _of_view(error, client, name) from None
            except Exception as error:  # of arrays that are read when they are used
                raise _of_view(error, client, name) from error
        known = () if classes is None else class_list(classes)
        return cls(client, views, group, columns[0], target_columns=columns[1], classes=known)

    @classmethod
    def from_dataset(  # noqa: PLR0913 - keywords with defaults
        cls,
        client: str,
        train: Any,  # noqa: ANN401 - of libraries that may not be installed
        test: Any = None,  # noqa: ANN401
        *,
        inputs: Columns = None,
        targets: str | None = None,
        group: int | None = None,
        classes: Sequence[Any] | None = None,
    ) -> ClientData:
        """Build a client from copies of data sets of other libraries.

        These are a map-style torch `Dataset` of pairs or of mappings by name, a torch `DataLoader`
        of batches of pairs, in the order that it gives, a `Dataset` of Hugging Face, or a
        `DataFrame` of pandas. Of samples of more parts the first two are read, with a warning.

        Names of classes become `classes`: those of a column of Hugging Face, and the attribute
        `classes` of a torch data set without a `target_transform`. They are left out, with a
        warning, where labels exceed them; the last ones may be absent from a view.

        Each sample is read once, here. A transform that draws random numbers, such as augmentation
        in the code of the data set, is therefore drawn once for the whole run; what is to be drawn
        anew for each batch belongs into `forward` of the network, where `self.training` is true.

        Args:
            client: name of the client.
            train: training samples.
            test: test samples, if any.
            inputs: of data sets with columns, that of the inputs, or several; columns of numbers
                become one axis. By default the only one among `image`, `img`, `inputs` and `x`,
                where that has arrays; else all but that of the targets, and but others whose name
                is usual for targets, of which a warning tells.
            targets: of data sets with columns, that of the targets; by default the only one among
                `label`, `labels`, `target` and `targets`, or, without these, `y` and `fine_label`.
            group: true group, used for analysis only.
            classes: labels of all classes, in one order for all clients, where targets are such
                labels, for example text, or numbers of names that the data set has for its classes.

        Returns:
            The client, with the view `train` and, if given, `test`.

        Raises:
            TypeError: a data set is none of these, has no length, or its samples are not pairs.
            ValueError: there is no sample or no such column, samples differ in shape, names of
                classes of the two parts contradict each other, or code of a data set raised an
                error of any kind, which is the cause; the message names client, view and sample.
                See also `bcfl.ClientData.from_arrays`.
        """
        client, columns = checked_name(client), ()
        pairs: dict[str, Any] = {}
        names_of: dict[str, tuple[str, ...] | None] = {}
        for name, given in ((TRAIN, train), (TEST, test)):
            try:
                if given is not None:
                    found = samples_of(given, inputs, targets, columns)
                    columns, names_of[name] = columns or found.columns, found.class_names
                    y = found.targets
                    if classes is not None:
                        y = named_labels(y, found.class_names, class_list(classes))
                    pairs[name] = found.inputs, y
            except Exception as error:  # of code of the data set
                raise _of_view(error, client, name) from (error.__cause__ or error)
        if TRAIN not in pairs:
            raise ValueError(f"client {client!r} has no training samples")
        made = cls.from_arrays(client, pairs[TRAIN], pairs.get(TEST), group, classes=classes)
        known = made.classes if classes is not None else _names_of_numbers(made, names_of)
        return replace(made, columns=columns, classes=known)


def _names_of_numbers(
    data: ClientData, names_of: Mapping[str, tuple[str, ...] | None]
) -> tuple[str, ...]:
    """Names that the data sets of a client have for its classes; none where these are no classes.

    Raises:
        ValueError: the data sets of its views have names that contradict each other.
    """
    try:
        names = common_names(names_of, "classes=[...] with all names numbers the labels of both")
    except ValueError as error:
        raise ValueError(f"client {data.client!r}: {error}") from None
    targets = [view.targets for view in data.views.values() if len(view)]
    if names is None or len(set(names)) < len(names) or targets[0].is_floating_point():
        return ()
    rows = targets[0].ndim > 1
    highest = max(int(each.max()) for each in targets)
    remedy = "dataclasses.replace(client, classes=[...]) gives others"
    width = targets[0].shape[1] if rows else None
    return fitting_names(f"client {data.client!r}", names, highest, width, remedy) or ()


def _of_view(error: Exception, client: str, view: str) -> TypeError | ValueError:
    """An error that names client and view; those of other libraries may not be made by a text."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    told = f"{type(error).__name__}: " * (type(error) is not kind)
    return kind(f"client {client!r}, view {view!r}: {told}{error}")


def pooled(clients: Sequence[ClientData], name: str = POOL) -> ClientData:
    """Pool all training samples under one name.

    Args:
        clients: clients in the order of concatenation.
        name: of the pseudo-client.
    """
    views = [data.views[TRAIN] for data in clients]
    inputs = torch.cat([view.inputs for view in views])
    return ClientData(name, {TRAIN: View(inputs, torch.cat([view.targets for view in views]))})


def with_validation(data: ClientData, share: float, seed: int) -> ClientData:
    """Hold out a random share of a client's training samples for validation, at each time step.

    The split depends on the seed, the client's name and the step alone. Clients with validation
    samples are returned unchanged.

    Args:
        data: the client.
        share: share of the training samples, rounded down; at least one of four or more samples.
        seed: seed of the split.
    """
    views = dict(data.views)
    if share > 0 and VALIDATION not in views:
        for name, train in data.views.items():
            kind, colon, step = name.partition(":")
            count = max(int(share * len(train)), 1 if len(train) >= 4 else 0)
            if kind == TRAIN and count:
                parts: list[int | str] = [seed, data.client, "validation"]
                parts += [step] if step else []
                order = torch.from_numpy(generator(*parts).permutation(len(train)))
                views[name] = train.take(order[count:].sort().values)
                views[VALIDATION + colon + step] = train.take(order[:count].sort().values)
    return replace(data, views=views)
