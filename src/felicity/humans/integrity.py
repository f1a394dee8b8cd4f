"""Whether the stored answers are what raters gave: a checksum beside each, and SQLite's own check."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from felicity.core.errors import BadInput
from felicity.humans.tables import answers, find_checksum

if TYPE_CHECKING:
    from felicity.humans.store import Store

SOUND = "ok"


def read_stored_answers(store: "Store") -> Sequence[Any]:
    """Every answer of a study.

    Raises BadInput if the database or an answer in it is damaged.
    """
    where = store.database.engine.url.render_as_string(hide_password=True)
    mend = "restore the database from a backup"
    if store.database.sqlite:
        with store.database.read() as connection:
            result = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
        if result != SOUND:
            raise BadInput(f"The database {where} is damaged ({str(result).splitlines()[0]}); {mend}.")
    rows = store.rows(answers)
    for row in rows:
        # Answers of earlier versions have no checksum.
        if row.checksum is not None and row.checksum != find_checksum(row._mapping):
            raise BadInput(
                f"The answer to step {row.step} of slot {row.slot} in {where} is damaged: it is not what was "
                f"stored; {mend}."
            )
    return rows
