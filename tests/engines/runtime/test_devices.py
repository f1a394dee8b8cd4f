"""What is set on the machine before a model computes."""

import os
import platform

import pytest

from felicity.engines.runtime.devices import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only GNU's C library has these settings")
def test_freed_memory_is_kept_unless_the_user_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    assert keep_freed_memory()
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "131072")
    assert not keep_freed_memory()
