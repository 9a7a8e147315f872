"""load - customers who order, pay, complain and change their minds, until the process is ended.

One transaction after another, about RATE a second: orders with items, status changes, edited
profiles, returns that delete an order, and now and then a transaction that is rolled back.
"""
import random
import signal
import sys
import time

import psycopg

RATE = 150


def order(conn, dice):
    customer = dice.randint(1, 20000)
    number = conn.execute("insert into orders (customer_id) values (%s) returning id",
                          [customer]).fetchone()[0]
    for line in range(1, dice.randint(2, 5)):
        conn.execute("insert into order_items values (%s, %s, %s, %s, %s)",
                     [number, line, f"Product {dice.randrange(500)}", dice.randint(1, 5),
                      dice.randint(100, 9999) / 100])
    conn.execute("update orders set total = (select sum(quantity * price) from order_items"
                 " where order_id = orders.id) where id = %s", [number])


def progress(conn, dice):
    conn.execute("update orders set status = case status when 'new' then 'paid'::status"
                 " when 'paid' then 'shipped' else status end"
                 " where id in (select id from orders order by id desc offset %s limit 3)",
                 [dice.randrange(300)])


def profile(conn, dice):
    conn.execute("update customers set profile = profile || jsonb_build_object('points', %s::int),"
                 " tags = array_append(tags[1:3], %s) where id = %s",
                 [dice.randrange(1000), dice.choice(("late", "loyal", "new")),
                  dice.randint(1, 20000)])


def letter_stays(conn, dice):
    """Changes an order that has a long note: the note itself is not sent again."""
    conn.execute("update orders set status = 'returned' where id = %s",
                 [500 * dice.randint(1, 120)])


def give_back(conn, dice):
    conn.execute("delete from orders where id = (select max(id) - %s from orders)",
                 [dice.randrange(50)])


def renumber(conn, dice):
    conn.execute("update order_items set line = line + 100 where (order_id, line) in"
                 " (select order_id, line from order_items where line < 100"
                 " and order_id = %s limit 1)", [dice.randint(1, 60000)])


def main(uri):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    dice = random.Random(1)
    jobs = [order, progress, profile, letter_stays, give_back, renumber]
    with psycopg.connect(uri) as conn:
        while True:
            for job in dice.choices(jobs, [40, 30, 20, 5, 4, 4], k=dice.choice((1, 1, 1, 4))):
                job(conn, dice)
            if dice.random() < 0.05:
                conn.rollback()
            else:
                conn.commit()
            time.sleep(1 / RATE)


if __name__ == "__main__":
    main(sys.argv[1])
