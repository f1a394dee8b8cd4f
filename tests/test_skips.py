"""Nothing skips in CI but for the reasons on the list."""

from types import SimpleNamespace

import pytest

from tests import conftest


@pytest.mark.parametrize(
    ("in_ci", "reason", "outcome"),
    [
        (True, "Ray is not installed: pip install 'felicity[ray]'", "failed"),
        (True, "the published data is not here; set FELICITY_DATA to its folder", "skipped"),
        (True, "FELICITY_VLLM names no Python that has vLLM", "skipped"),
        (False, "Ray is not installed: pip install 'felicity[ray]'", "skipped"),
    ],
)
def test_a_skip_is_a_failure_in_ci_unless_its_reason_is_listed(
    monkeypatch: pytest.MonkeyPatch, in_ci: bool, reason: str, outcome: str
) -> None:
    monkeypatch.setattr(conftest, "IN_CI", in_ci)
    report = SimpleNamespace(outcome="skipped", longrepr=("tests/test_ray.py", 19, f"Skipped: {reason}"))
    conftest._fail_if_skipped(report)
    assert report.outcome == outcome
    assert outcome == "skipped" or reason in report.longrepr
