"""The order of a rater's lists as a number, since clocks may be set back; withdrawals still to be erased."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("slots", sa.Column("number", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("study", sa.Column("unerased", sa.Integer(), nullable=False, server_default="0"))
    slots = sa.table(
        "slots",
        sa.column("id", sa.String),
        sa.column("rater", sa.String),
        sa.column("first", sa.Boolean),
        sa.column("started", sa.Float),
        sa.column("number", sa.Integer),
    )
    connection = op.get_bind()
    order = sa.select(slots.c.id, slots.c.rater, slots.c.first).order_by(slots.c.started)
    seen: dict[str, int] = {}
    for row in connection.execute(order).all():
        if not row.first:
            # A rater's first list is marked; those after it come by their times, as they did before.
            seen[row.rater] = seen.get(row.rater, 1) + 1
            connection.execute(sa.update(slots).where(slots.c.id == row.id).values(number=seen[row.rater]))


def downgrade() -> None:
    op.drop_column("study", "unerased")
    op.drop_column("slots", "number")
