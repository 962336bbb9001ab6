import pytest
import torch

from bcfl.hypotheses.posterior import Block, Posterior
from posteriors import DiagonalGaussian


def test_a_newborn_is_the_isotropic_prior_around_its_network(shared_body, newborn):
    born = newborn(shared_body, 3, precision=2.5)
    assert torch.equal(born.mean(shared_body), shared_body.initial(3)[0])
    assert born.precision(shared_body).tolist() == [2.5] * 26
    assert born.prior_precision(shared_body).tolist() == [2.5] * 26
    assert [block.name for block in born.blocks] == ["head", "body"]
    assert born.num_parameters == 26
    for block in born.blocks:
        assert block.gaussian is block.base is block.prior


def test_keys_name_content(shared_body, newborn):
    one, other = newborn(shared_body, 0), newborn(shared_body, 1)
    assert one.key == newborn(shared_body, 0).key
    mixed = Posterior((one.blocks[0], other.blocks[1]))
    assert len({one.key, other.key, mixed.key, *(b.key for b in one.blocks)}) == 5


def test_the_key_of_one_block_is_the_posteriors(linear, newborn):
    born = newborn(linear)
    assert born.key == born.blocks[0].key


def test_vectors_are_in_the_models_order_not_in_that_of_the_blocks(shared_body, newborn):
    born = newborn(shared_body)
    numbered = []
    for number, block in enumerate(born.blocks):
        size = block.gaussian.mean.shape[-1]
        gaussian = DiagonalGaussian(
            torch.full((size,), float(number)), torch.full((size,), number + 1.0)
        )
        numbered.append(
            Block(
                key=str(number),
                name=block.name,
                gaussian=gaussian,
                base=gaussian,
                prior=gaussian,
                buffers=block.buffers,
            )
        )
    posterior = Posterior(tuple(numbered))
    assert posterior.mean(shared_body).tolist() == [1.0] * 16 + [0.0] * 10
    assert posterior.precision(shared_body).tolist() == [2.0] * 16 + [1.0] * 10


def test_a_whole_gaussian_needs_the_model_where_there_are_blocks(shared_body, linear, newborn):
    one = newborn(linear)
    assert one.gaussian() is one.blocks[0].gaussian
    divided = newborn(shared_body, precision=2.0)
    assert torch.equal(divided.gaussian(shared_body).mean, divided.mean(shared_body))
    assert divided.gaussian(shared_body).precision.tolist() == [2.0] * divided.num_parameters
    with pytest.raises(ValueError, match="model must be given"):
        divided.gaussian()
