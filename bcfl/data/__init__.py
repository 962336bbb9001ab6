"""The samples of a client for training, validation and tests, and how they change over time.

Data sets and their partitions among clients are in `experiments`.
"""

from bcfl.data.class_names import common_names, fitting_names
from bcfl.data.clients import ClientData
from bcfl.data.frames import named_columns, ordered_columns, without_frame
from bcfl.data.images import holds_images, pixels_of
from bcfl.data.names import TEST, TRAIN, VALIDATION
from bcfl.data.scales import InputsWarning
from bcfl.data.sources import samples_of
from bcfl.data.streams import Schedule, at_step, num_steps, view_name
from bcfl.data.view import View

__all__ = [
    "TEST",
    "TRAIN",
    "VALIDATION",
    "ClientData",
    "InputsWarning",
    "Schedule",
    "View",
    "at_step",
    "common_names",
    "fitting_names",
    "holds_images",
    "named_columns",
    "num_steps",
    "ordered_columns",
    "pixels_of",
    "samples_of",
    "view_name",
    "without_frame",
]
