"""Asks DuckDB and Polars about exported Parquet files, and DuckDB about the CSV; prints their answers as one JSON line.

usage: read_tables.py DIR STEM

The queries are those of `docs/export.md`, read from there: block by block, named by the heading above.
"""

import json
import pathlib
import re
import sys

import duckdb
import polars as pl

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "export.md"


def queries() -> dict[str, str]:
    """SQL of the docs by heading."""
    text = DOCS.read_text()
    return {title: sql for title, sql in re.findall(r"^### (.+?)\n+```sql\n(.*?)```", text, re.M | re.S)}


def python_blocks() -> dict[str, str]:
    text = DOCS.read_text()
    return {
        title: code for title, code in re.findall(r"^### (.+?)\n(?:(?!^### ).)*?```python\n(.*?)```", text, re.M | re.S)
    }


def rows(answer) -> list[list]:
    return [list(row) for row in answer]


def from_duckdb(folder: pathlib.Path, stem: str) -> dict:
    database = duckdb.connect()
    facts = {}
    for title, sql in queries().items():
        facts[title] = rows(database.execute(sql.replace("run.", f"{folder}/{stem}.")).fetchall())
    facts["sums"] = list(
        database.execute(
            f"SELECT count(*), max(active), max(reserved), last(active ORDER BY index), sum(active_change) "
            f"FROM '{folder}/{stem}.parquet'"
        ).fetchone()
    )
    same = f"SELECT count(*), max(active), max(reserved), sum(active_change) FROM '{folder}/{stem}.csv'"
    facts["csv sums"] = list(database.execute(same).fetchone())
    facts["alone in stacks"] = database.execute(
        f"SELECT count(*) FROM '{folder}/{stem}.parquet' e ANTI JOIN '{folder}/{stem}.stacks.parquet' s "
        f"ON e.built_stack = s.stack WHERE e.built_stack IS NOT NULL"
    ).fetchone()[0]
    return facts


def from_polars(folder: pathlib.Path, stem: str) -> dict:
    facts = {}
    for title, code in python_blocks().items():
        names = {"pl": pl}
        exec(code.replace('"run.', f'"{folder}/{stem}.'), names)
        facts[title] = rows(names["answer"].rows())
    return facts


def main() -> None:
    folder, stem = pathlib.Path(sys.argv[1]), sys.argv[2]
    print(json.dumps({"duckdb": from_duckdb(folder, stem), "polars": from_polars(folder, stem)}))


if __name__ == "__main__":
    main()
