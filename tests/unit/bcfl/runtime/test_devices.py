import pytest
import torch
from threadpoolctl import threadpool_info

from bcfl.runtime.devices import device_named, limited_threads


def test_the_cpu_is_always_there():
    assert device_named("cpu") == torch.device("cpu")


def test_auto_selects_cuda_where_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_named("auto").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_named("auto").type == "cuda"


@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_cuda_without_cuda_is_refused(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"device '{name}' is not available: torch finds no CUDA"):
        device_named(name)


def test_a_missing_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_named("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match="device 'cuda:2' is not available: torch finds 2 CUDA"):
        device_named("cuda:2")


@pytest.mark.parametrize("name", ["gpu", "", "cuda:x", "meta", "mps"])
def test_other_devices_are_refused(name):
    with pytest.raises(ValueError, match=f"device must be 'auto', 'cpu', 'cuda' .*got '{name}'"):
        device_named(name)


def test_threads_are_limited_for_a_while():
    before = torch.get_num_threads()
    with limited_threads(1):
        assert torch.get_num_threads() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info())
    assert torch.get_num_threads() == before
    with limited_threads(None):
        assert torch.get_num_threads() == before


def test_no_thread_is_refused():
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"), limited_threads(0):
        pass
