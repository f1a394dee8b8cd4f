"""Where and how a model computes: device, threads, and whether this processor can do the dtype."""

import ctypes
import os
import platform
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from felicity.core.errors import NotPossible, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.memo import recall, remember, versions
from felicity.core.wording import decimal

DTYPES = ("float32", "bfloat16", "float16")
# Not for runs: it measures the rounding errors of float32.
WIDE = "float64"
# Processor time of a control group per period, in microseconds, or `max`.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
# oneDNN reads this variable once, at the first matrix product of a process.
ISA = "ONEDNN_MAX_CPU_ISA"
# The best instruction set without matrix tiles (AMX). Some virtual machines announce tiles without giving
# their size (CPUID leaf 0x1d); oneDNN then configures none and crashes.
ISA_WITHOUT_TILES = "AVX512_CORE_FP16"
# Run in a separate process with a dtype and a device: the products of a medium-sized layer in that dtype and
# in float32, in turns, and the ratio of their speeds. The best of several, since others may use the machine.
PROBE = """
import sys, time, torch
dtype, device = getattr(torch, sys.argv[1]), sys.argv[2]
if device == "auto":
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
best = {}
for _ in range(9):
    for kind in (torch.float32, dtype):
        left = torch.ones(512, 768, device=device, dtype=kind)
        right = torch.ones(3072, 768, device=device, dtype=kind)
        begin = time.perf_counter()
        float(torch.nn.functional.linear(left, right)[0, 0])
        best[kind] = min(best.get(kind, 1e9), time.perf_counter() - begin)
print(best[torch.float32] / best[dtype])
"""
PROBE_SECONDS = 300
# `auto` takes half precision where its products are at least so many times as fast: some items are scored
# twice, and not everything is products.
PAYS = 1.5
HALF = "bfloat16"
# Settings of GNU malloc, by their numbers in malloc.h: how much freed memory is kept, and the largest block
# that is served from it. Larger blocks among small long-lived ones would fragment the memory.
MALLOC = {-1: 512 << 20, -3: 64 << 20}


@dataclass(frozen=True, kw_only=True)
class Compute:
    """How a model is to be computed.

    device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`. dtype: `float32`, `bfloat16` or `float16`.
    device_map: as in transformers (`auto` distributes a model over all devices); it overrides device.
    allow_code: the version of a model's own Python code that may be run.
    """

    device: str = "auto"
    dtype: str = "float32"
    device_map: str | None = None
    allow_code: str | None = None


def refuse_word_model_options(compute: Compute, *, models: str, processor: bool = False) -> None:
    """Refuse options that a word model has no use for; with `processor` it runs on the CPU only.

    Raises NotPossible.
    """
    for option, wrong, what in (
        ("dtype", compute.dtype != "float32", "in float32 only"),
        ("device-map", compute.device_map is not None, "on one device only"),
        ("device", processor and compute.device not in ("auto", "cpu"), "on the processor only"),
    ):
        if wrong:
            raise NotPossible(f"{models} models compute {what}; omit --{option}.")


def choose_device(device: str) -> str:
    """The device to use; `auto` is the accelerator if there is one.

    Raises NotPossible if the device does not exist.
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
    """Check that matrix products in `dtype` run on this machine, before a model is loaded.

    torch may trust the processor's feature flags and crash with an illegal instruction. So the first product
    runs in a process of its own; if that crashes, the offending instructions are switched off.

    Raises UnknownName for another dtype, NotPossible if the dtype does not work here.
    """
    if dtype == WIDE:
        return
    if dtype not in DTYPES:
        raise UnknownName("dtype", dtype, DTYPES)
    if dtype == "float32" or choose_without_torch(device) != "cpu" or measure_speedup(dtype, device):
        return
    advice = f"set {ISA}={ISA_WITHOUT_TILES} in the environment and start again, or use --dtype float32"
    if "torch" in sys.modules or not measure_speedup(dtype, device, isa=ISA_WITHOUT_TILES):
        raise NotPossible(f"torch crashes on {dtype} products on this processor; {advice}.")
    os.environ[ISA] = ISA_WITHOUT_TILES


def choose_without_torch(device: str) -> str:
    """The kind of device, as far as it is known before torch is loaded; `auto` counts as `cpu` until then."""
    if device != "auto" or "torch" not in sys.modules:
        return "cpu" if device == "auto" else device.partition(":")[0]
    return choose_device(device).partition(":")[0]


def prepare_processor() -> None:
    """Set threads and memory for matrix products; environment variables of the user take precedence."""
    set_threads()
    keep_freed_memory()


def set_threads() -> int:
    """Use one thread per available processor, unless the user set a number."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), count_processors()))
    return torch.get_num_threads()


def keep_freed_memory() -> bool:
    """Let GNU malloc keep freed memory for the next batch; returns whether it does.

    Otherwise the memory of each layer's results goes back to the system and returns page by page, which
    took a tenth of the time of a BLiMP run, logits included.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return all(mallopt(setting, size) == 1 for setting, size in MALLOC.items())


def count_processors() -> int:
    """Processors available to this process: those it may run on, as far as its container's share goes."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    allowed = max(1, len(os.sched_getaffinity(0)))
    return max(1, min(allowed, read_quota(QUOTA) or allowed))


def read_quota(path: Path) -> int | None:
    """The processors that a control group may use, rounded up; None if it has no limit."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def measure_speedup(dtype: str, device: str, *, isa: str | None = None) -> float | None:
    """How many times as fast as float32's the products in `dtype` are here; None if they do not run.

    It is measured once per machine and then remembered.
    """
    environment = os.environ | ({ISA: isa} if isa else {})
    key = {
        "machine": _describe_machine(),
        "dtype": dtype,
        "device": device,
        "settings": {name: environment.get(name, "") for name in (ISA, "OMP_NUM_THREADS")},
        "processors": count_processors(),
        "program": PROBE,
        "versions": versions("torch"),
    }
    recalled = recall("products", key)
    if recalled and isinstance(recalled.get("speedup"), float):
        return float(recalled["speedup"])
    command = [sys.executable, "-c", PROBE, dtype, device]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=PROBE_SECONDS, check=True, text=True
        )
        speedup = float(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    remember("products", key, {"speedup": speedup})
    return speedup


@dataclass(frozen=True, kw_only=True)
class DtypeChoice:
    """Which dtype a run computes in, and why.

    asked: what the user gave. taken: what is used. speedup: how many times as fast as float32's its products
    are on this machine, if that was measured.
    """

    asked: str
    taken: str
    why: str
    speedup: float | None = None

    @property
    def slow(self) -> bool:
        """Whether half precision was taken where it most likely costs time instead of saving it."""
        return self.taken != "float32" and self.speedup is not None and self.speedup < PAYS

    def as_dict(self) -> dict[str, str | float | None]:
        """The fields by name, for manifests."""
        return asdict(self)


def choose_dtype(asked: str, device: str) -> DtypeChoice:
    """What `auto` means on this machine: half precision where it saves time; any other dtype means itself.

    Raises UnknownName for another dtype, NotPossible if the requested one is not available.
    """
    if asked not in (*DTYPES, "auto"):
        raise UnknownName("dtype", asked, (*DTYPES, "auto"))
    if asked == "float32":
        return DtypeChoice(asked=asked, taken=asked, why="asked for")
    wanted = HALF if asked == "auto" else asked
    try:
        prepare_dtype(wanted, device)
    except NotPossible as error:
        if asked == "auto":
            return DtypeChoice(asked=asked, taken="float32", why=str(error))
        raise
    speedup = measure_speedup(wanted, device)
    if asked != "auto":
        return DtypeChoice(asked=asked, taken=asked, why="asked for", speedup=speedup)
    if speedup is None:
        why = f"products in {wanted} do not run on this machine"
        return DtypeChoice(asked=asked, taken="float32", why=why)
    pays = speedup >= PAYS
    why = (
        f"products in {wanted} are {decimal(speedup)} times as fast as in float32 on this machine, and half "
        f"precision is taken from {PAYS} times on"
    )
    return DtypeChoice(asked=asked, taken=wanted if pays else "float32", why=why, speedup=speedup)


def _describe_machine() -> list[str]:
    """The host and its processor, with what the processor announces."""
    lines: list[str] = []
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
        named = {name.strip(): value.strip() for name, value in fields.items()}
        lines = [named.get("model name", ""), fingerprint(sorted(named.get("flags", "").split()))]
    return [platform.node(), platform.machine(), *lines]
