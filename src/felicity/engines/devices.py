"""Where and how a model computes: device, threads, and whether this processor can do the dtype."""

import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass

from felicity.core.errors import NotPossible, UnknownName

DTYPES = ("float32", "bfloat16", "float16")
# oneDNN reads this once, at the first product in a process.
ISA = "ONEDNN_MAX_CPU_ISA"
# The best it has below the matrix tiles (AMX), which some virtual machines announce without saying how large
# they are (CPUID's leaf 0x1d), so that oneDNN configures none and dies.
ISA_WITHOUT_TILES = "AVX512_CORE_FP16"
PROBE = "import torch; a = torch.ones(64, 64, dtype=torch.{dtype}); torch.nn.functional.linear(a, a)"
PROBE_SECONDS = 120
# Settings of GNU's malloc, by their numbers in malloc.h: how much free memory is kept, and how large a piece
# may be to come from it. A larger piece among small ones that stay would leave holes.
MALLOC = {-1: 512 << 20, -3: 64 << 20}


@dataclass(frozen=True, kw_only=True)
class Compute:
    """How a model is to be computed.

    device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`. dtype: `float32`, `bfloat16` or `float16`.
    device_map: as transformers takes it (`auto` spreads a model over all there is); it wins over device.
    """

    device: str = "auto"
    dtype: str = "float32"
    device_map: str | None = None


def refuse_for_words(compute: Compute, *, models: str, processor: bool = False) -> None:
    """Stop where a word model is asked to compute as it does not; with `processor` it knows no device either.

    Raises NotPossible.
    """
    for option, wrong, what in (
        ("dtype", compute.dtype != "float32", "in float32 only"),
        ("device-map", compute.device_map is not None, "on one device only"),
        ("device", processor and compute.device not in ("auto", "cpu"), "on the processor only"),
    ):
        if wrong:
            raise NotPossible(f"{models} models compute {what}; leave --{option} away.")


def choose_device(device: str) -> str:
    """`auto` is the accelerator where there is one.

    Raises NotPossible for a device that is not there.
    """
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise NotPossible(f"There is no device '{device}' here; use --device auto or cpu.") from error
    return device


def prepare_dtype(dtype: str, device: str) -> None:
    """Make sure that products in `dtype` run here at all, before a model is loaded for them.

    torch may take a processor at its word and die of an illegal instruction; so the first product is
    tried in a process of its own, and where that dies the offending instructions are switched off.

    Raises UnknownName for another dtype, NotPossible where it cannot be had.
    """
    if dtype not in DTYPES:
        raise UnknownName("dtype", dtype, DTYPES)
    if dtype == "float32" or choose_without_torch(device) != "cpu" or _runs(dtype):
        return
    advice = f"set {ISA}={ISA_WITHOUT_TILES} in the environment and start again, or use --dtype float32"
    if "torch" in sys.modules or not _runs(dtype, isa=ISA_WITHOUT_TILES):
        raise NotPossible(f"torch dies at {dtype} products on this processor; {advice}.")
    os.environ[ISA] = ISA_WITHOUT_TILES


def choose_without_torch(device: str) -> str:
    """The kind of device, as far as it can be told before torch is loaded; `auto` may still be any."""
    if device != "auto" or "torch" not in sys.modules:
        return "cpu" if device == "auto" else device.partition(":")[0]
    return choose_device(device).partition(":")[0]


def prepare_processor() -> None:
    """Threads and memory set for products on this machine; what the user has set in the environment wins."""
    set_threads()
    keep_freed_memory()


def set_threads() -> int:
    """As many threads as this process may use processors, unless the user has said otherwise."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), count_processors()))
    return torch.get_num_threads()


def keep_freed_memory() -> bool:
    """Let the C library keep what torch frees for the next batch, where it is GNU's; tells if it does.

    Else it hands the memory of each layer's results back to the system and gets it again page by page,
    which took a tenth of the time of a BLiMP run, logits included.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return all(mallopt(setting, size) == 1 for setting, size in MALLOC.items())


def count_processors() -> int:
    """Processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _runs(dtype: str, *, isa: str | None = None) -> bool:
    environment = os.environ | ({ISA: isa} if isa else {})
    command = [sys.executable, "-c", PROBE.format(dtype=dtype)]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
