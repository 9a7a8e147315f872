"""0 and -0 in Parquet files. DuckDB's dictionaries take them for one value, so a file that has a -0
has no dictionaries, and all others do. Signs are compared by every reader; pyarrow says which files
have dictionaries."""
import io
import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from lib.oracle import compare
from lib.readers import reader_properties

COLUMNS = "id int primary key, word text, f float8, r real[], note text"
ROW = """insert into t select n, (array['new', 'paid', 'shipped'])[1 + n % 3],
    case when n % 3 = {zero} then '-0' else (n % 2)::text end::float8,
    case when n % 5 = {zero} then array['-0', 0, 1] else array[0, n % 4] end::real[], 'note'
    from generate_series({first}, {last}) n"""
NEVER = 9


def insert(database, first, last, zero=NEVER):
    database.execute(ROW.format(first=first, last=last, zero=zero))


def has_negative_zero(column):
    """The column, or a list in it: 1 / -0 is -Infinity, and of nothing else."""
    if pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    return pa.types.is_floating(column.type) and pc.any(
        pc.equal(pc.divide(pa.scalar(1, column.type), column), -math.inf)).as_py() is True


def look(lake, seen):
    """[(has a -0, has dictionaries)] of the data files that are not in `seen`, in no order."""
    table = lake.table("t")
    found = []
    for task in StaticTable.from_metadata(table.uri, reader_properties(table.storage)) \
            .scan().plan_files():
        path = task.file.file_path
        if path in seen:
            continue
        seen.add(path)
        file = pq.ParquetFile(io.BytesIO(table.storage.read(path)))
        negative = any(map(has_negative_zero, file.read().columns))
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        dictionaries = any(group.column(i).has_dictionary_page for group in groups
                           for i in range(group.num_columns))
        found.append((negative, dictionaries))
    return found


@pytest.mark.parametrize("how", ["plain", "sorted", "partitioned"])
def test_only_files_with_a_negative_zero_have_no_dictionaries(how, database, walberg, lake):
    """Copied, with the first -0 in the middle; inserted; unchanged values that are read back."""
    walberg.settings |= {"sorted": {"tables.public.t.sort": "['id desc']"},
                         "partitioned": {"tables.public.t.partition": "['truncate[10000](id)']"},
                         "plain": {}}[how]
    database.execute(f"create table t ({COLUMNS})", "alter table t alter r set storage external",
                     "alter table t alter note set storage external")
    insert(database, 0, 9998)            # more than a batch of the copy
    insert(database, 10000, 14999, zero=1)
    database.execute("insert into t select -1, 'wide', 1, array_agg(n * '-0'::real), 'note'"
                     " from generate_series(1, 3000) n",
                     "insert into t values (9999, 'wide', 1, null, repeat(md5('1'), 200))",
                     "vacuum analyze t")
    seen = set()
    walberg.once()
    copied = look(lake, seen)
    assert (False, True) in copied and (True, False) in copied, copied
    assert len(set(copied)) == 2 and (how == "partitioned" or len(copied) == 2), copied

    insert(database, 15000, 19999)
    walberg.once()
    assert set(look(lake, seen)) == {(False, True)}
    insert(database, 20000, 24999, zero=2)
    walberg.once()
    assert set(look(lake, seen)) == {(True, False)}

    database.execute("update t set word = 'other' where id between 9000 and 9999")
    walberg.once()
    assert set(look(lake, seen)) == {(False, True)}, "a text is read back, and no real"
    database.execute("update t set word = 'more' where id = -1")
    walberg.once()
    assert set(look(lake, seen)) == {(True, False)}, "the list is read back"
    compare(database, lake, ["t"])
