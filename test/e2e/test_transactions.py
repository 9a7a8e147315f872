"""What one transaction may hold: truncates that reach further tables, savepoints that are taken
back, a row that comes and goes. Long ones are in test_big_transaction."""
from lib.oracle import compare


def test_truncate_cascades_to_who_refers(database, walberg, lake):
    """Each table is emptied where the truncate stands between the rows of its transaction."""
    database.execute(
        "create table parent (id int primary key, v text)",
        "create table child (id int primary key, parent int references parent)",
        "create table grandchild (id int, child int references child)",
        "create table stranger (id int primary key)",
        "insert into parent select n, 'old' from generate_series(1, 50) n",
        "insert into child select n, n from generate_series(1, 50) n",
        "insert into grandchild select n, n from generate_series(1, 50) n",
        "insert into stranger values (1)")
    walberg.once()
    with database.connect(autocommit=False) as conn:
        conn.execute("insert into parent values (60, 'gone'), (61, 'gone')")
        conn.execute("insert into child values (60, 60), (61, 61)")
        conn.execute("update child set parent = 61 where id = 3")
        conn.execute("truncate parent cascade")
        conn.execute("insert into parent values (1, 'new'), (60, 'new')")
        conn.execute("insert into child values (60, 1), (3, 60)")
        conn.execute("insert into grandchild values (1, 3)")
        conn.execute("insert into stranger values (2)")
        conn.commit()
    walberg.once()
    assert compare(database, lake, ["parent", "child", "grandchild", "stranger"]) == 2 + 2 + 1 + 2
    with database.connect(autocommit=False) as conn:          # taken back: as if it had not been
        conn.execute("savepoint s")
        conn.execute("truncate parent cascade")
        conn.execute("rollback to s")
        conn.execute("insert into parent values (2, 'newer')")
        conn.commit()
    walberg.once()
    assert compare(database, lake, ["parent", "child", "grandchild", "stranger"]) == 3 + 2 + 1 + 2


def test_subtransactions_that_are_taken_back(database, walberg, lake):
    """A thousand of them, each with rows, among rows that stay; some are inside one that stays."""
    database.execute("create table t (id int primary key, v text)",
                     "create table twins (id int, v text)",
                     "alter table twins replica identity full",
                     "insert into t select n, 'old' from generate_series(1, 1000) n")
    walberg.once()
    database.execute("""do $$ begin
        for i in 1..1000 loop
            insert into t values (1000 + i * 10, 'stays');
            begin
                insert into t select 1000 + i * 10 + n, 'taken back' from generate_series(1, 9) n;
                update t set v = 'taken back' where id = i;
                delete from t where id = 1000 + i * 10;
                insert into twins values (i, 'taken back');
                begin
                    delete from twins;
                    raise 'inner';
                exception when raise_exception then null; end;
                raise 'outer';
            exception when raise_exception then null; end;
            update t set v = 'stays ' || i where id = i and i % 3 = 0;
            begin
                insert into twins values (i % 7, 'stays');
                begin
                    update t set v = 'taken back' where id = 1000 + i * 10;
                    raise 'inner';
                exception when raise_exception then null; end;
            end;
        end loop; end $$""")
    walberg.once()
    assert compare(database, lake, ["t", "twins"]) == 2000 + 1000


def test_one_key_comes_and_goes(database, walberg, lake):
    """A thousand times in one transaction, then across as many commits; beside each a key that
    stays, and one that is there at the end."""
    database.execute("create table t (id int primary key, v int)", "insert into t values (1, 0)",
                     "create table whole (id int, v int)",
                     "alter table whole replica identity full",
                     "insert into whole values (1, 0), (1, 0)")
    walberg.once()
    database.execute("""do $$ begin for i in 1..1000 loop
        delete from t where id = 1;
        insert into t values (1, i), (2, i);
        delete from t where id = 2;
        insert into whole values (2, 0);
        delete from whole where id = 2; end loop; end $$""")
    walberg.once()
    compare(database, lake, ["t", "whole"])
    assert database.rows("select * from t") == [(1, 1000)]
    walberg.start(commit__interval="100ms").wait_streaming()
    database.execute("""create procedure come_and_go() language plpgsql as $$ begin
        for i in 1..1000 loop
            insert into t values (2, i);
            insert into whole values (2, 0);
            commit;
            delete from t where id = 2;
            delete from whole where id = 2;
            commit;
            if i % 250 = 0 then perform pg_sleep(0.2); end if;
        end loop; end $$""", "call come_and_go()", "insert into t values (3, 3)")
    walberg.wait_caught_up()
    assert walberg.stop() == 0
    assert compare(database, lake, ["t", "whole"]) == 4
    database.execute("insert into t values (2, 0)", "insert into whole values (2, 0)")
    walberg.once()
    assert compare(database, lake, ["t", "whole"]) == 6
