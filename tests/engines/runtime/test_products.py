"""oneDNN's products beside torch's, and the processors on which they are used."""

from pathlib import Path

import pytest
import torch

from felicity.engines.runtime import choose_linear, has_onednn, multiply_onednn, products

NEEDED = pytest.mark.skipif(not has_onednn(), reason="this build of torch has no oneDNN")


@NEEDED
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 247), (300,), (0,)])
def test_both_libraries_give_the_same_product(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    states, weights = torch.randn(*shape, 576), torch.randn(192, 576)
    exact = (states.double() @ weights.double().T).float()
    torch.testing.assert_close(multiply_onednn(states, weights), exact, rtol=0, atol=2e-4)
    flat = states.flatten(0, -2)
    for onednn in (True, False):
        monkeypatch.setattr(products, "prefer_onednn", lambda onednn=onednn: onednn)
        target = torch.full((len(flat), 192), torch.nan)
        products.write_product(flat, weights, target)
        torch.testing.assert_close(target, exact.flatten(0, -2), rtol=0, atol=2e-4)


@NEEDED
@pytest.mark.parametrize(
    ("vendor", "widest", "expected"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
        (None, "AVX512", False),
    ],
)
def test_onednn_is_used_on_amd_with_avx512(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: str | None, widest: str, expected: bool
) -> None:
    told = tmp_path / "cpuinfo"
    if vendor:
        told.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
    monkeypatch.setattr(products, "PROCESSORS", told)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: widest)
    products.prefer_onednn.cache_clear()
    assert products.prefer_onednn() is expected
    assert (choose_linear(torch.float32) is multiply_onednn) is expected
    # Only in float32 does MKL do the products of torch's choice.
    for other in (torch.float64, torch.bfloat16):
        assert choose_linear(other) is torch.nn.functional.linear
    products.prefer_onednn.cache_clear()
