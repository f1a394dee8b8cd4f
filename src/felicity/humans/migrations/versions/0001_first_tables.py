"""The first tables: study, raters, slots, answers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study"),
    )
    op.create_table(
        "raters",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=True),
        sa.Column("test", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("consent_hash", sa.String(64), nullable=False),
        sa.Column("code", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_raters"),
        sa.UniqueConstraint("key_hash", name="uq_raters_key_hash"),
    )
    op.create_table(
        "slots",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("rater", sa.String(16), nullable=False),
        sa.Column("list", sa.String(64), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("first", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("trials", sa.JSON(), nullable=False),
        sa.Column("lease", sa.Float(), nullable=False),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("finished", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["rater"], ["raters.id"], name="fk_slots_rater"),
        sa.PrimaryKeyConstraint("id", name="pk_slots"),
        sa.UniqueConstraint("rater", "list", name="uq_slots_rater_list"),
    )
    op.create_index("ix_slots_list_state", "slots", ["list", "state"])
    op.create_table(
        "answers",
        sa.Column("slot", sa.String(16), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("row", sa.Integer(), nullable=True),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(12), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("normalised", sa.Text(), nullable=True),
        sa.Column("correct", sa.Boolean(), nullable=True),
        sa.Column("rt_ms", sa.Float(), nullable=True),
        sa.Column("server_ms", sa.Float(), nullable=True),
        sa.Column("flags", sa.JSON(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("revised", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["slot"], ["slots.id"], name="fk_answers_slot"),
        sa.PrimaryKeyConstraint("slot", "step", name="pk_answers"),
    )


def downgrade() -> None:
    for name in ("answers", "slots", "raters", "study"):
        op.drop_table(name)
