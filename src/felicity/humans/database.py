"""One engine per database: SQLite that survives a power cut, or PostgreSQL with row locks."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.files import disk_errors

BUSY_MS = 15_000
CHECKPOINT_MS = 100
POOL = 20
IDLE_SECONDS = 2.0
RESTORE = "restore it from a backup"
MIGRATIONS = Path(__file__).parent / "migrations"
# The name, as a number, of the lock under which a PostgreSQL database is set up.
SETUP_LOCK = 7_232_718_461


class StorageFailed(FelicityError):
    """The database did not store something; nothing of it may be acknowledged."""


class Database:
    """Transactions on a study's database; every write is committed before `write` returns."""

    def __init__(self, url: str) -> None:
        self.engine = _open(url)
        self.sqlite = self.engine.dialect.name == "sqlite"
        # SQLite has one writer at a time: threads queue here instead of polling for the lock of the file.
        self._turn = threading.Lock()
        # The driver begins a transaction of PostgreSQL by itself; SQLite's are begun by hand below.
        self._autocommit = (
            self.engine if self.sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        )

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on the disk when the block ends.

        Raises StorageFailed if it is not.
        """
        if not self.sqlite:
            with self._connect() as connection:
                yield connection
            return
        with self._turn, self._connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def set_up(self) -> Iterator[Connection]:
        """A transaction that makes tables or claims them; one process at a time."""
        with self.write() as connection:
            if not self.sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SETUP_LOCK)))
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that changes nothing."""
        with self._connect() as connection:
            if self.sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """A connection for single statements that change nothing; each sees the newest state by itself."""
        with self._connect(self._autocommit) as connection:
            yield connection

    @contextmanager
    def _connect(self, engine: Engine | None = None) -> Iterator[Connection]:
        try:
            with (engine or self.engine).begin() as connection:
                yield connection
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise StorageFailed(f"The database did not store this: {reason}.") from error
        except JSONDecodeError as error:
            raise BadInput(f"The database contains a value that is not JSON ({error}); {RESTORE}.") from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise StorageFailed("The connection to the database broke.") from error
            raise

    def erase_deleted(self, table: sa.Table, *, patience: float = 0.0) -> None:
        """Write the table anew, so that nothing that was deleted from it can be read from the file.

        SQLite writes all its tables. Its `secure_delete` is not enough: where it has moved a row to another
        page, a copy that it no longer knows of may stay behind. patience: for how many seconds programs that
        read the old state are waited for.

        Raises StorageFailed; what was deleted may then still be in the file or its log.
        """
        if not self.sqlite:
            with self.autocommit() as connection:
                connection.exec_driver_sql(f"VACUUM FULL {table.name}")
            return
        with self._turn, self._connect() as connection:
            connection.exec_driver_sql("VACUUM")
        deadline = time.monotonic() + patience
        while not self._empty_log():
            if time.monotonic() >= deadline:
                raise StorageFailed(
                    "What was deleted is still in the log of the database, because another program is "
                    "reading it; try again when that is done."
                )
            time.sleep(CHECKPOINT_MS / 1000)

    def _empty_log(self) -> bool:
        """Move SQLite's log into the file and cut it to nothing; gives whether that was possible."""
        # Writers wait meanwhile, so that a reader who stays may hold this up for a moment only.
        with self._turn, self._connect() as connection:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={CHECKPOINT_MS}")
            try:
                return not connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            finally:
                connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_MS}")

    def migrate(self) -> None:
        """Bring the tables up to date."""
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with self.set_up() as connection:
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise BadInput(
                    f"The tables of the database are of a version that is unknown here ({error}); update "
                    f"felicity, or {RESTORE}."
                ) from error

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _open(url: str) -> Engine:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise BadInput(
            f"'{url}' is not the address of a database; write postgresql+psycopg://USER@HOST/NAME."
        ) from error
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise BadInput(
            f"Databases of the kind '{parsed.drivername}' are unknown here; use postgresql+psycopg or sqlite."
        )
    try:
        if parsed.drivername == "sqlite":
            return _open_sqlite(url)
        engine = sa.create_engine(url, pool_size=POOL, max_overflow=0, pool_timeout=30, hide_parameters=True)
        _test_idle_connections(engine)
        with engine.connect():
            return engine
    except OperationalError as error:
        reason = str(error.orig).splitlines()[0]
        shown = parsed.render_as_string(hide_password=True)
        raise NotPossible(f"Cannot open the database {shown}: {reason}.") from error


def _test_idle_connections(engine: Engine) -> None:
    """A connection that has not been used for a while may be broken, and is tried before it is used again.

    The pool's own test before every use would cost every answer three more round trips to the server.
    """

    @sa.event.listens_for(engine, "checkin")
    def note(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def test(connection: Any, record: Any, _proxy: Any) -> None:
        if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            # The pool opens another connection and comes back here.
            raise DisconnectionError from error


def _open_sqlite(url: str) -> Engine:
    path = sa.make_url(url).database
    if path and path != ":memory:" and not Path(path).exists():
        # SQLite gives its further files the mode of this one.
        with disk_errors(Path(path), "create"):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    engine = sa.create_engine(
        url,
        # What raters wrote never stands in a message.
        hide_parameters=True,
        pool_size=POOL,
        max_overflow=POOL,
        connect_args={"timeout": BUSY_MS / 1000, "check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # Transactions are begun by hand: the driver's own would begin too late and without the lock.
        connection.isolation_level = None
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
            f"busy_timeout={BUSY_MS}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "handle_error")
    def refuse_damaged(context: Any) -> None:
        # Its subclasses are other failures, such as a full disk.
        if type(context.original_exception) is sqlite3.DatabaseError:
            reason = str(context.original_exception)
            raise BadInput(f"{engine.url.database} is damaged ({reason}); {RESTORE}.")

    with engine.connect():
        return engine
