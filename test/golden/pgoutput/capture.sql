-- capture.sql - the rows and changes that `capture` records.
create extension hstore;
create extension citext;
create type mood as enum ('sad', 'so so', 'happy');
create domain price as numeric(9,2);
create domain fee as price;
create domain pair as int[];
create type thing as (x int, label text, tags text[]);
create type nest as (t thing, at timestamptz, cost price);

create table every_type (
    id int primary key,
    c_bool bool, c_int2 int2, c_int4 int4, c_int8 int8, c_oid oid, c_xid xid,
    c_float4 float4, c_float8 float8,
    c_numeric numeric, c_num12_2 numeric(12,2), c_num38_10 numeric(38,10), c_money money,
    c_text text, c_varchar varchar(20), c_char char(5), c_name name, c_qchar "char", c_citext citext,
    c_xml xml, c_json json, c_jsonb jsonb, c_bytea bytea, c_bit bit(5), c_varbit varbit, c_uuid uuid,
    c_date date, c_time time, c_timetz timetz, c_ts timestamp, c_tstz timestamptz,
    c_interval interval, c_mood mood, c_price price, c_fee fee,
    c_ints int[], c_texts text[], c_grid int[][], c_nums numeric(10,3)[], c_stamps timestamptz[],
    c_boxes box[], c_fees fee[], c_pairs pair[], c_moods mood[], c_floats float4[],
    c_thing thing, c_things thing[], c_nest nest, c_hstore hstore,
    c_range int4range, c_inet inet, c_vec int2vector, c_tsv tsvector, c_point point
);

-- Each value of every_type in a form that leaves no doubt, made by Postgres itself: integers for
-- dates and decimals, the send functions' bytes for floats, times and UUIDs, JSON for nested ones;
-- '!' for what has no home in the lake.
create function stamp(t timestamp) returns text language sql immutable as
    $$ select case when not isfinite(t) or t >= '294247-01-10 04:00:54.775808' then '!'
                   else encode(timestamp_send(t), 'hex') end $$;
create function unscaled(n numeric, scale int) returns text language sql immutable as
    $$ select case when n = 'NaN' then '!' else (n * 10::numeric ^ scale)::numeric(50,0)::text end $$;
create view expected as select
    id,
    c_bool::int, c_int2::text, c_int4::text, c_int8::text, c_oid::text, c_xid::text,
    encode(float4send(c_float4), 'hex') as f4, encode(float8send(c_float8), 'hex') as f8,
    c_numeric::text, unscaled(c_num12_2, 2), unscaled(c_num38_10, 10) as n38,
    unscaled(c_money::numeric, 2) as m,
    c_text::text, c_varchar::text, rpad(c_char::text, 5) as c_char, c_name::text, c_qchar::text,
    c_citext::text, c_xml::text, c_json::text, c_jsonb::text, encode(c_bytea, 'hex') as c_bytea,
    c_bit::text, c_varbit::text, encode(uuid_send(c_uuid), 'hex') as c_uuid,
    case when isfinite(c_date) then (c_date - date '1970-01-01')::text
         when not isfinite(c_date) then '!' end as c_date,
    c_time::text, c_timetz::text, stamp(c_ts) as c_ts, stamp(c_tstz at time zone 'UTC') as c_tstz,
    c_interval::text, c_mood::text, unscaled(c_price, 2) as c_price, unscaled(c_fee, 2) as c_fee,
    case when array_lower(c_ints, 1) <> 1 or array_ndims(c_ints) <> 1 then '!'
         else to_json(c_ints)::text end as c_ints,
    to_json(c_texts)::text as c_texts,
    case when array_ndims(c_grid) <> 2 then '!' else to_json(c_grid)::text end as c_grid,
    (select json_agg(unscaled(n, 3)) from unnest(c_nums) n)::text as c_nums,
    (select json_agg(stamp(t at time zone 'UTC')) from unnest(c_stamps) t)::text as c_stamps,
    (select json_agg(b::text) from unnest(c_boxes) b)::text as c_boxes,
    (select json_agg(unscaled(f, 2)) from unnest(c_fees) f)::text as c_fees,
    to_json(c_pairs)::text as c_pairs, to_json(c_moods)::text as c_moods,
    (select json_agg(encode(float4send(f), 'hex')) from unnest(c_floats) f)::text as c_floats,
    to_json(c_thing)::text as c_thing, to_json(c_things)::text as c_things,
    case when c_nest is distinct from null then
        json_build_object('t', to_json((c_nest).t),
                          'at', stamp((c_nest).at at time zone 'UTC'),
                          'cost', unscaled((c_nest).cost, 2)) end::text as c_nest,
    hstore_to_json(c_hstore)::text as c_hstore,
    c_range::text, c_inet::text, c_vec::text, c_tsv::text, c_point::text
from every_type;

-- The types of its columns and what they are made of.
create view used_types as
with recursive used(oid) as (
    select atttypid from pg_attribute where attrelid = 'every_type'::regclass and attnum > 0
    union
    select part from used, pg_type t, lateral (
        select typelem where typelem <> 0
        union select typbasetype where typbasetype <> 0
        union select atttypid from pg_attribute where attrelid = typrelid and attnum > 0
                                                      and not attisdropped) parts(part)
    where t.oid = used.oid
)
select t.oid, typname, typtype, coalesce((select e.typdelim from pg_type e where e.oid = t.typelem),
                                         ',') as delimiter,
    (typcategory = 'A' and typlen = -1 and typelem <> 0)::int as is_array,
    case when typtype = 'd' then typbasetype else typelem end as base, typtypmod,
    coalesce((select string_agg(attname || ' ' || atttypid || ' ' || atttypmod, ',' order by attnum)
              from pg_attribute where attrelid = typrelid and attnum > 0 and not attisdropped),
             '') as members
from pg_type t where t.oid in (select oid from used);

create table things (id int primary key, name text, big text);
alter table things alter column big set storage external;
create table wholes (id int, big text);
alter table wholes replica identity full;
alter table wholes alter column big set storage external;
create table "Odd ""names""" ("a b" int not null, "ü" text);
create unique index odd on "Odd ""names""" ("a b");
alter table "Odd ""names""" replica identity using index odd;
create publication everything for table every_type, things, wholes, "Odd ""names""";
select pg_create_logical_replication_slot('capture', 'pgoutput');

-- one transaction: nothing but NULL, the usual, the extremes
begin;
insert into every_type (id) values (1);
insert into every_type values (2,
    true, 12, -34, 5678901234, 4294967295, '4294967295', 1.1, 0.1,
    12345678901234567890.123456789012345678901234567890, 1234567890.12, 1234.5678, '$1,234.56',
    E'tab\tnewline\nbackslash\\ quote" é €', 'vär', 'ab', 'a name', 'x', 'MiXed', '<a>1</a>', '{"a": [1, 2]}', '{"b":1.50}',
    '\x00ff10', B'10101', B'1', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    '2026-11-30', '10:00:00.123456', '10:00:00+05:30', '2026-11-30 10:00:00.1', '2026-11-30 10:00:00+01',
    '1 year 2 mons 3 days 04:05:06.7', 'so so', 19.99, 0.5,
    '{1,NULL,3}', array['plain', 'NULL', null, '', 'a b', 'q"u\o', '{x}', E'tab\tline\n', 'ä,b'], '{{1,2},{3,NULL}}',
    '{1.5,NULL,-0.001}', '{2026-11-30 10:00:00+00,NULL}', '{(2,2),(1,1);(4,4),(3,3)}',
    '{1.1,2.22}', '{"{1,2}",NULL,"{}"}', '{sad,"so so"}', '{1.1,NaN,-Infinity,1e-20}',
    row(1, 'a "quoted" \label\, (x)', array['t1', 'two, "2"', null, ''])::thing,
    array[row(1, null, null)::thing, row(null, '', '{}')::thing, null, row(3, 'NULL', '{NULL,"NULL"}')::thing],
    row(row(7, 'in"ner', '{a,"b c"}'), '2026-11-30 10:00:00.5+00', 12.34)::nest,
    hstore(array['a', '1', 'quote"back\', 'x', 'null', null, '', '', 'sp ace', ', =>']),
    '[1,10)', '10.1.2.3/8', '1 2 3', 'a fat cat', '(1,2)');
insert into every_type (id, c_bool, c_int2, c_int4, c_int8, c_oid, c_xid, c_float4, c_float8, c_numeric,
    c_num12_2, c_num38_10, c_money, c_text, c_char, c_bytea, c_uuid, c_date, c_time, c_ts, c_tstz,
    c_ints, c_texts, c_grid, c_hstore, c_things) values
(3, false, -32768, -2147483648, -9223372036854775808, 0, '0', '-0', '-0', '-0.00', -9999999999.99,
    -9999999999999999999999999999.9999999999, '-92233720368547758.08', '', '', '',
    '00000000-0000-0000-0000-000000000000', '4713-01-01 BC', '24:00:00', '4713-01-01 00:00:00 BC',
    '4713-01-01 00:00:00+00 BC', '{}', '{}', '{}', '', '{}'),
(4, true, 32767, 2147483647, 9223372036854775807, 4294967295, '7', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN',
    '92233720368547758.07', '\N', '     ', '\x5c', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '5874897-12-31', '23:59:59.999999', '294247-01-10 04:00:54.775807',
    '294247-01-10 04:00:54.775807+00', '[2:3]={1,2}', '{NULL}', '{{1}}', 'a=>b', '{NULL}'),
(5, null, null, null, null, null, null, '3.4028235e38', '1.7976931348623157e308', null, 0, 0, '0',
    repeat('0123456789', 300), null, decode(repeat('00ff', 300), 'hex'), null, 'infinity', null,
    'infinity', '-infinity', '{{1},{2}}', '{"{}"}', '{1,2}', '"a"=>NULL', null),
(6, null, null, null, null, null, null, '1e-45', '5e-324', null, -0.01, -0.0000000001, '-0.01', null,
    null, null, null, '-infinity', null, '294276-12-31 23:59:59.999999', '0044-03-15 12:00:00+00 BC',
    '[0:1]={7,8}', null, '{{{1}}}', null, null);
commit;

-- many values that nobody chose
select setseed(0.42);
insert into every_type (id, c_float4, c_float8, c_num12_2, c_num38_10, c_money, c_date, c_ts, c_tstz,
                        c_int8, c_ints)
select id, ((random() - 0.5) * 10::float8 ^ (random() * 60 - 30))::float4,
    (random() - 0.5) * 10::float8 ^ (random() * 500 - 250),
    ((random() - 0.5) * 1e9)::numeric(12,2), ((random() - 0.5) * 1e20)::numeric(38,10),
    ((random() - 0.5) * 1e9)::numeric(12,2)::money,
    date '0001-01-01' + (random() * 3000000)::int, timestamp '0001-01-01' + random() * interval '3000000 days',
    timestamptz '1900-01-01' + random() * interval '60000 days',
    ((random() - 0.5) * 1.8e19)::numeric(19,0)::int8,
    array[(random() * 100)::int, (random() * 1e9)::int]
from generate_series(100, 159) id;

-- each kind of change under each identity, and unchanged TOAST
begin;
insert into things values (1, 'one', repeat('x', 3000)), (2, 'two', 'short');
update things set name = 'uno' where id = 1;
update things set id = 3 where id = 1;
update things set big = null where id = 3;
delete from things where id = 2;
commit;
begin;
insert into wholes values (1, repeat('y', 3000));
update wholes set id = 2;
delete from wholes;
commit;
begin;
insert into "Odd ""names""" values (1, 'ä');
update "Odd ""names""" set "a b" = 2;
delete from "Odd ""names""";
commit;
select pg_logical_emit_message(true, 'walberg', 'hello');
select pg_logical_emit_message(false, 'walberg', '');
truncate things, wholes restart identity cascade;
alter table things rename big to large;
insert into things values (9, 'nine', 'n');

-- replayed from elsewhere: an Origin message
select pg_replication_origin_create('capture-origin');
select pg_replication_origin_session_setup('capture-origin');
begin;
select pg_replication_origin_xact_setup('0/ABCD', '2026-11-30 10:00:00+00');
insert into things values (10, 'ten', 't');
commit;
select pg_replication_origin_session_reset();
select pg_replication_origin_drop('capture-origin');
