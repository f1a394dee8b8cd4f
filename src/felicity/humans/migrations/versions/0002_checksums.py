"""A checksum beside each answer; answers of before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("answers", sa.Column("checksum", sa.String(16), nullable=True))


def downgrade() -> None:
    op.drop_column("answers", "checksum")
