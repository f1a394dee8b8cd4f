"""A Ray cluster: joined or made, and its machines shared out among workers."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from felicity.core.errors import FelicityError

LOCAL = "local"
# What a worker on another machine must be told to find the same files and compute the same way.
TELL = ("FELICITY_CACHE", "FELICITY_DATA", "HF_HOME", "HF_HUB_OFFLINE", "ONEDNN_MAX_CPU_ISA")
# Shards are small; Ray would take a third of the memory for them.
OBJECT_STORE = 200_000_000

Machines = list[dict[str, float]]


@contextmanager
def join_cluster(address: str) -> Iterator[Machines]:
    """The cluster's machines, what each has of CPU and GPU; one that was joined here is left in the end.

    Raises FelicityError where there is no cluster at the address.
    """
    import ray

    joined = not ray.is_initialized()
    if joined:
        _join(address or os.environ.get("RAY_ADDRESS") or LOCAL)
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    finally:
        if joined:
            ray.shutdown()


def _join(address: str) -> None:
    import ray

    # Ray reports usage to its makers unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    told = {name: os.environ[name] for name in TELL if name in os.environ}
    options: dict[str, Any] = {"runtime_env": {"env_vars": told}, "log_to_driver": False}
    if address == LOCAL:
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    try:
        ray.init(address=address, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FelicityError(
            f"There is no Ray cluster at '{address}' ({reason}); check --ray-address or RAY_ADDRESS, or "
            "leave them out to use this machine."
        ) from error


def count_places(machines: Machines) -> int:
    """Workers that a cluster has room for: one for each GPU, else one a machine, with all its cores.

    >>> count_places([{"CPU": 8.0}, {"CPU": 8.0}])
    2
    """
    return max(1, int(sum(machine.get("GPU", 0) for machine in machines)) or len(machines))


def share_out(machines: Machines, count: int) -> dict[str, float]:
    """What each of so many workers takes, so that all of them fit.

    >>> share_out([{"CPU": 8.0}, {"CPU": 4.0}], 2)
    {'num_cpus': 4.0}
    """
    cores = sum(machine.get("CPU", 0) for machine in machines)
    each = float(min(cores // count, min((machine["CPU"] for machine in machines), default=1)))
    cards = sum(machine.get("GPU", 0) for machine in machines)
    if cards:
        return {"num_cpus": min(1.0, each), "num_gpus": min(1.0, cards / count)}
    return {"num_cpus": each}
