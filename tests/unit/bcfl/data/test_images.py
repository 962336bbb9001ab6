"""Images of Pillow as arrays: palettes, transparency, bits."""

import io
import struct
import zlib

import numpy as np
import pandas
import pytest
from PIL import Image
from torch.utils.data import Dataset

from bcfl import ClientData, View
from bcfl.data import pixels_of, samples_of
from bcfl.runtime import DataWarning
from experiments import datasets

SIZE = (3, 2)
RED = (255, 0, 0)


def in_palette():
    image = Image.new("P", SIZE, 1)
    image.putpalette([0, 0, 0, *RED])
    return image


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("1", SIZE, 1), [255]),
        (Image.new("L", SIZE, 7), [7]),
        (Image.new("LA", SIZE, (7, 255)), [7]),
        (Image.new("RGB", SIZE, RED), RED),
        (Image.new("RGBA", SIZE, (*RED, 255)), RED),
        (Image.new("CMYK", SIZE, (0, 255, 255, 0)), RED),
        (in_palette(), RED),
    ],
)
def test_grey_has_one_channel_and_every_kind_of_colour_three(image, expected):
    pixels = pixels_of(image)
    assert (pixels.shape, pixels.dtype) == ((len(expected), 2, 3), np.uint8)
    assert pixels[:, 1, 2].tolist() == list(expected)


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.float32])
def test_grey_of_more_bits_keeps_them(kind):
    numbers = np.arange(6, dtype=kind).reshape(2, 3) + 1000
    pixels = pixels_of(Image.fromarray(numbers))
    assert pixels.dtype == kind
    np.testing.assert_array_equal(pixels[0], numbers)


def with_transparent_black():
    image = Image.new("RGB", SIZE)
    image.info["transparency"] = (0, 0, 0)
    return image


@pytest.mark.parametrize("image", [Image.new("RGBA", SIZE, (*RED, 0)), with_transparent_black()])
def test_transparency_that_is_left_out_is_told(image):
    with pytest.warns(DataWarning, match=r"transparent pixels, which are read as if .* opaque"):
        assert pixels_of(image).shape == (3, 2, 3)


def png_of_16_bits():
    def chunk(name, content):
        checked = name + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", *SIZE, 16, 2, 0, 0, 0)
    rows = (b"\0" + bytes(SIZE[0] * 6)) * SIZE[1]
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def tiff_of_16_bits():
    entries = [(256, 3, 1, 3), (257, 3, 1, 2), (258, 3, 3, 200), (259, 3, 1, 1), (262, 3, 1, 2)]
    entries += [(273, 4, 1, 300), (277, 3, 1, 3), (278, 3, 1, 2), (279, 4, 1, 36)]
    head = b"II*\0" + struct.pack("<IH", 8, len(entries))
    head += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    return head.ljust(200, b"\0") + struct.pack("<3H", 16, 16, 16).ljust(100, b"\0") + bytes(36)


@pytest.mark.parametrize(
    "content", [png_of_16_bits(), tiff_of_16_bits(), b"P6 3 2 4095\n" + bytes(36)]
)
def test_colours_of_16_bits_are_refused(content):
    with Image.open(io.BytesIO(content)) as image:
        assert image.mode == "RGB"
        with pytest.raises(ValueError, match=r"16 bits in each channel .* Pillow reads 8; save it"):
            pixels_of(image)


class Listed(Dataset):
    def __init__(self, *images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], index


def test_images_of_a_torch_data_set_are_read_by_the_same_rule():
    found = samples_of(Listed(in_palette(), Image.new("CMYK", SIZE, (0, 255, 255, 0))))
    assert found.inputs[:, :, 0, 0].tolist() == [list(RED)] * 2


@pytest.mark.parametrize("mode", ["P", "LA", "RGBA", "CMYK", "YCbCr", "HSV", "1", "I;16", "L"])
def test_lists_of_images_are_read_as_single_ones_are(mode):
    deep = mode == "I;16"
    grey = Image.fromarray(np.arange(12, dtype="u2").reshape(3, 4)) if deep else None
    image = grey or Image.effect_noise((4, 3), 50).convert("RGB").convert(mode)
    expected = pixels_of(image)
    objects = np.empty(2, object)
    objects[:] = [image, image]
    for given in ([image, image], (image, image), objects, pandas.Series([image, image])):
        view = View.from_arrays(given, [0, 1])
        np.testing.assert_array_equal(view.inputs[1].numpy(), expected)
        found = datasets.from_numpy(given, [0, 1], scaled=False)
        np.testing.assert_array_equal(found.inputs[1], expected)
    nested = View.from_arrays([[image], [image]], [0, 1])
    np.testing.assert_array_equal(nested.inputs[1, 0].numpy(), expected)
    with pytest.raises(TypeError, match=r"inputs must be an array .* whose parts differ in shape"):
        View.from_arrays([[image], [image, image]], [0, 1])


def test_channels_of_images_in_lists_are_known():
    image = Image.new("RGB", (8, 3))  # which the sizes alone would tell to be last
    for channels in (None, "first", "last"):
        found = datasets.from_numpy([image, image], [0, 1], channels=channels)
        assert found.input_shape == (3, 3, 8)
    pair = (image, image.convert("L"))
    assert datasets.from_numpy(pair, [0, 1]).input_shape == (3, 3, 8)
    grey, arrays = ([pair[1]], [0]), (np.full((1, 3, 8), 255, np.uint8), [0])
    for train, test in ((grey, arrays), (arrays, grey)):
        found = datasets.Dataset.from_arrays("grey", train, test)
        assert found.inputs.mean(axis=(1, 2, 3)).tolist() == [train is arrays, test is arrays]


def test_grey_images_get_three_channels_beside_coloured_ones():
    grey, red = Image.new("L", SIZE, 7), Image.new("RGB", SIZE, RED)
    expected = [
        np.broadcast_to(np.reshape(colour, (3, 1, 1)), (3, 2, 3)) for colour in ((7, 7, 7), RED)
    ]
    pairs = [(grey, 0), (red, 1)]
    client = ClientData.from_dataset("ann", pairs)
    for inputs in (client.views["train"].inputs, View.from_arrays([grey, red], [0, 1]).inputs):
        np.testing.assert_array_equal(inputs.numpy(), expected)
    np.testing.assert_array_equal(datasets.from_torch(pairs, scaled=False).inputs, expected)
    arrays = View.from_arrays([grey, np.full((2, 3), 8, np.uint8)], [0, 1]).inputs
    assert (arrays.shape, arrays[1].unique()) == ((2, 1, 2, 3), 8)
    with pytest.raises(ValueError, match=r"samples must agree in shape, .*; pad or crop them"):
        ClientData.from_dataset("ann", [(grey, 0), (red.resize((1, 1)), 1)])
