"""Run by alembic: the store hands over its connection."""

from alembic import context

from felicity.humans.tables import metadata


def run_migrations() -> None:
    """Bring the database of the store's connection up to date."""
    context.configure(
        connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
    )
    with context.begin_transaction():
        context.run_migrations()


# alembic executes this file; whoever only imports it has no configuration.
if hasattr(context, "config"):
    run_migrations()
