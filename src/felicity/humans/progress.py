"""How a study is going: lists, raters, answer times and what looks wrong, without identifying anyone."""

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Any

from felicity.humans.store import Store
from felicity.humans.tables import answers, raters, slots

# A rater who gives one answer throughout this many trials is worth a look.
FEWEST_FOR_FLAT = 8
DROPPED = ("lapsed", "withdrawn", "released")


@dataclass(frozen=True)
class Progress:
    """One row per list and one per slot, with the totals; test runs are counted separately."""

    lists: list[dict[str, Any]]
    raters: list[dict[str, Any]]
    totals: dict[str, Any]


def describe_progress(store: Store) -> Progress:
    """The state of every list and slot now."""
    rater_rows = {row.id: row for row in store.rows(raters)}
    by_slot: dict[str, list[Any]] = {}
    for row in store.rows(answers):
        if row.kind in ("trial", "question"):
            by_slot.setdefault(row.slot, []).append(row)
    rows = [
        _describe_slot(store, row, rater_rows[row.rater], by_slot.get(row.id, []))
        for row in sorted(store.rows(slots), key=lambda row: row.started)
    ]
    real = [row for row in rows if not row["test"]]
    quota = store.study.design.quota
    lists = []
    for one in store.lists:
        states = Counter(row["state"] for row in real if row["list"] == one.name)
        lists.append(
            {
                "list": one.name,
                "between": " / ".join(one.levels),
                "trials": len(one.rows),
                "finished": states["finished"],
                "live": states["live"],
                "wanted": max(quota - states["finished"] - states["live"], 0),
                "dropped": sum(states[name] for name in DROPPED),
                "screened": states["screened"],
                "set_aside": states["set_aside"],
            }
        )
    return Progress(lists, rows, _totals(store, real, rows, lists))


def _totals(
    store: Store, real: list[dict[str, Any]], rows: list[dict[str, Any]], lists: list[dict[str, Any]]
) -> dict[str, Any]:
    states = Counter(row["state"] for row in real)
    begun, dropped = len(real), sum(states[name] for name in DROPPED)
    minutes = [row["minutes"] for row in real if row["minutes"] is not None]
    return {
        "quota": store.study.design.quota * len(lists),
        "finished": states["finished"],
        "live": states["live"],
        "lapsed": states["lapsed"],
        "withdrawn": states["withdrawn"],
        "released": states["released"],
        "screened": states["screened"],
        "set_aside": states["set_aside"],
        "dropped": dropped,
        "drop_out": round(dropped / begun, 3) if begun else None,
        "answers": sum(row["answers"] for row in real),
        "median_minutes": round(median(minutes), 1) if minutes else None,
        "tests": len(rows) - len(real),
        "paused": store.paused(),
        "unerased": store.unerased(),
    }


def _describe_slot(store: Store, slot: Any, rater: Any, given: list[Any]) -> dict[str, Any]:
    state = slot.state
    if state == "live" and slot.lease <= store.clock():
        state = "lapsed"
    trials = [row for row in given if row.kind == "trial" and row.role != "practice"]
    times = [row.rt_ms if row.rt_ms is not None else row.server_ms for row in trials]
    checks = [row for row in given if row.correct is not None and row.role != "practice"]
    flags: Counter[str] = Counter(flag for row in given for flag in row.flags)
    values = {row.value for row in trials if row.role == "target" and row.value is not None}
    if len(values) == 1 and len(trials) >= FEWEST_FOR_FLAT:
        flags["one_answer_throughout"] += 1
    return {
        "rater": slot.rater,
        "test": rater.test,
        "list": slot.list,
        "state": state,
        "answers": len(trials),
        "of": len([row for row, _ in slot.trials if store.study.stimuli[row].role != "practice"]),
        "minutes": round((slot.finished - slot.started) / 60, 1) if slot.finished else None,
        "median_ms": round(median(times)) if times else None,
        "failed_checks": sum(not row.correct for row in checks),
        "checks": len(checks),
        "flags": ", ".join(f"{name} {count}" for name, count in sorted(flags.items())),
    }
