"""The scale-out engine, on psycopg 3."""

from perdure.errors import StoreUnavailable

try:
    from perdure._store.postgres.engine import PostgresEngine
except ImportError as error:
    if (error.name or "").partition(".")[0] == "perdure":
        raise
    raise StoreUnavailable(
        f"a store on PostgreSQL needs psycopg, which cannot be imported here: {error}",
        kept="nothing was touched",
        do="pip install 'perdure[postgres]'",
    ) from error

__all__ = ["PostgresEngine"]
