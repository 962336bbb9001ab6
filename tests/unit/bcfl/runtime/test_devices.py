from concurrent.futures import ThreadPoolExecutor

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


def test_a_device_of_torch_is_its_name():
    assert device_named(torch.device("cpu")) == torch.device("cpu")
    with pytest.raises(ValueError, match=r"or such a torch.device, got 'meta'"):
        device_named(torch.device("meta"))
    with pytest.raises(TypeError, match=r"device must be 'auto', .* got 0"):
        device_named(0)


def test_threads_are_limited_for_a_while():
    before = torch.get_num_threads()
    with limited_threads(1):
        assert torch.get_num_threads() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info())
    assert torch.get_num_threads() == before
    with limited_threads(None):
        assert torch.get_num_threads() == before


def test_limits_that_overlap_leave_what_the_first_found():
    before = threadpool_info(), torch.get_num_threads(), of_new_threads()
    first, second = limited_threads(1), limited_threads(2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert all(p["num_threads"] == 2 for p in threadpool_info() if p["user_api"] == "blas")
    second.__exit__(None, None, None)
    assert (threadpool_info(), torch.get_num_threads(), of_new_threads()) == before


def of_new_threads():
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(torch.get_num_threads).result()


def test_a_limit_that_outlasts_that_of_another_thread_restores_its_threads():
    before = of_new_threads()
    with ThreadPoolExecutor(1) as threads:
        first, second = limited_threads(1), limited_threads(1)
        first.__enter__()
        threads.submit(second.__enter__).result()
        first.__exit__(None, None, None)
        assert threads.submit(torch.get_num_threads).result() == 1
        threads.submit(second.__exit__, None, None, None).result()
    assert of_new_threads() == before


def test_no_thread_is_refused():
    with (
        pytest.raises(
            ValueError, match="threads must be a whole number of at least 1 or None, got 0"
        ),
        limited_threads(0),
    ):
        pass
