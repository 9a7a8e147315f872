/* Write.java - tables of format version 3 as the reference Java library writes them.
 *
 *     Write WAREHOUSE      file:///path or s3://bucket/prefix
 *
 * Makes the tables public.<name> below it, in the layout of the file catalog:
 *
 *   vectors    5 data files of 1,000 rows, id = 1000 * file + row, and all that deletes can be:
 *                0  position deletes of v2 that are still there, and a vector that has them and more
 *                1  position deletes of v2 only, written before the upgrade
 *                2  two vectors, one after the other
 *                3  a vector with every row
 *                4  nothing
 *   replaced   a file of 10 rows: position deletes of 3 and 4, and a vector of 4 alone, which no
 *              writer should make. The spec: where there is a vector, position deletes do not count
 *   parts      partitioned by identity(part): two rows of each partition are deleted by vectors
 *   defaults   a file from before any column but id was there, and one from after; columns of
 *              every primitive type with an initial default, required and optional ones
 *   nested     the same for members of structs: added with a default, renamed, dropped, moved, in
 *              a list and in a map, too
 *   nanos, variants, points, nothing    a column of a type that version 3 brought
 *
 * s3://: S3_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. */
import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseMetastoreTableOperations;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.types.Types.NestedField;

public class Write {
    static FileIO io;
    static String warehouse;

    /* A table that one process makes. */
    static class Operations extends BaseMetastoreTableOperations {
        final String name;
        String location;

        Operations(String name) {
            this.name = name;
        }

        @Override
        protected String tableName() {
            return name;
        }

        @Override
        public FileIO io() {
            return io;
        }

        @Override
        protected void doRefresh() {
            refreshFromMetadataLocation(location);
        }

        @Override
        protected void doCommit(TableMetadata base, TableMetadata metadata) {
            location = writeNewMetadataIfRequired(base == null, metadata);
        }
    }

    public static void main(String[] args) throws Exception {
        warehouse = args[0];
        io = warehouse.startsWith("s3") ? s3() : new HadoopFileIO(new Configuration());
        vectors();
        replaced();
        parts();
        defaults();
        nested();
        one("nanos", Types.TimestampNanoType.withoutZone());
        one("variants", Types.VariantType.get());
        one("points", Types.GeometryType.crs84());
        one("nothing", Types.UnknownType.get());
    }

    static FileIO s3() {
        return CatalogUtil.loadFileIO("org.apache.iceberg.aws.s3.S3FileIO", Map.of(
            "s3.endpoint", System.getenv("S3_ENDPOINT"), "s3.path-style-access", "true",
            "client.region", System.getenv().getOrDefault("AWS_REGION", "us-east-1")), null);
    }

    static Table create(String name, Schema schema, PartitionSpec spec, int version) {
        Operations operations = new Operations("public." + name);

        operations.commit(null, TableMetadata.newTableMetadata(
            schema, spec, warehouse + "/public/" + name,
            Map.of("format-version", String.valueOf(version))));
        return new BaseTable(operations, operations.name);
    }

    /* Its last state, where the file catalog looks for it. */
    static void done(Table table) throws Exception {
        String folder = table.location() + "/metadata/";

        TableMetadataParser.write(((BaseTable) table).operations().refresh(),
                                  io.newOutputFile(folder + "v1.metadata.json"));
        try (OutputStream hint = io.newOutputFile(folder + "version-hint.text").create()) {
            hint.write('1');
        }
    }

    /* One data file with these rows; committed by the caller. */
    static DataFile data(Table table, PartitionData partition, List<Record> rows) throws Exception {
        OutputFileFactory files = OutputFileFactory.builderFor(table, 1, System.nanoTime())
            .format(FileFormat.PARQUET).build();
        DataWriter<Record> writer = Parquet.writeData(
                partition == null ? files.newOutputFile() : files.newOutputFile(partition))
            .schema(table.schema()).createWriterFunc(GenericParquetWriter::create)
            .withSpec(table.spec()).withPartition(partition).overwrite().build();

        try (writer) {
            rows.forEach(writer::write);
        }
        return writer.toDataFile();
    }

    static Record row(Table table, Object... values) {
        Record row = GenericRecord.create(table.schema());

        for (int i = 0; i < values.length; i++)
            row.set(i, values[i]);
        return row;
    }

    /* --- deletes ---------------------------------------------------------------------------- */

    static DeleteFile positions(Table table, DataFile file, long... rows) throws Exception {
        OutputFileFactory files = OutputFileFactory.builderFor(table, 2, System.nanoTime())
            .format(FileFormat.PARQUET).build();
        PositionDeleteWriter<Record> writer = Parquet.writeDeletes(files.newOutputFile())
            .withSpec(table.spec()).overwrite().buildPositionWriter();

        try (writer) {
            for (long row : rows)
                writer.write(PositionDelete.<Record>create().set(file.location(), row));
        }
        return writer.toDeleteFile();
    }

    /* Vectors of several data files, in one Puffin file. */
    static class Vectors {
        final Table table;
        final BaseDVFileWriter writer;

        Vectors(Table table, Function<String, PositionDeleteIndex> before) {
            this.table = table;
            writer = new BaseDVFileWriter(
                OutputFileFactory.builderFor(table, 3, System.nanoTime())
                    .format(FileFormat.PUFFIN).build(), before);
        }

        void delete(DataFile file, long first, long below) {
            for (long row = first; row < below; row++)
                writer.delete(file.location(), row, table.spec(), file.partition());
        }

        void commit(DeleteFile... replaced) throws Exception {
            RowDelta delta = table.newRowDelta();

            writer.close();
            delta.validateFromSnapshot(table.currentSnapshot().snapshotId());
            writer.result().deleteFiles().forEach(delta::addDeletes);
            for (DeleteFile file : replaced)
                delta.removeDeletes(file);
            delta.commit();
        }
    }

    static void vectors() throws Exception {
        Schema schema = new Schema(NestedField.required(1, "id", Types.LongType.get()));
        Table table = create("vectors", schema, PartitionSpec.unpartitioned(), 2);
        List<DataFile> files = new ArrayList<>();

        for (long file = 0; file < 5; file++) {
            List<Record> rows = new ArrayList<>();

            for (long i = 0; i < 1000; i++)
                rows.add(row(table, 1000 * file + i));
            files.add(data(table, null, rows));
            table.newAppend().appendFile(files.get((int) file)).commit();
        }

        DeleteFile old = positions(table, files.get(0), 0, 7, 999);

        table.newRowDelta().addDeletes(old)
            .addDeletes(positions(table, files.get(1), 3, 4, 500)).commit();

        upgrade(table);

        Vectors first = new Vectors(table, path -> null);

        first.delete(files.get(0), 0, 1);
        first.delete(files.get(0), 7, 8);
        first.delete(files.get(0), 999, 1000);
        first.delete(files.get(0), 100, 200);
        first.delete(files.get(2), 1, 2);
        first.delete(files.get(3), 0, 1000);
        first.commit();

        DeleteFile replaced = first.writer.result().deleteFiles().stream()
            .filter(f -> f.referencedDataFile().equals(files.get(2).location())).findFirst().get();
        Vectors second = new Vectors(table, path -> null);

        second.delete(files.get(2), 1, 2);
        second.delete(files.get(2), 990, 1000);
        second.commit(replaced);
        done(table);
    }

    static void upgrade(Table table) {
        TableOperations operations = ((BaseTable) table).operations();

        operations.commit(operations.current(), operations.current().upgradeToFormatVersion(3));
    }

    static void replaced() throws Exception {
        Schema schema = new Schema(NestedField.required(1, "id", Types.LongType.get()));
        Table table = create("replaced", schema, PartitionSpec.unpartitioned(), 2);
        List<Record> rows = new ArrayList<>();

        for (long i = 0; i < 10; i++)
            rows.add(row(table, i));

        DataFile file = data(table, null, rows);

        table.newAppend().appendFile(file).commit();
        table.newRowDelta().addDeletes(positions(table, file, 3, 4)).commit();
        upgrade(table);

        Vectors vectors = new Vectors(table, path -> null);

        vectors.delete(file, 4, 5);
        vectors.commit();
        done(table);
    }

    static void parts() throws Exception {
        Schema schema = new Schema(NestedField.required(1, "id", Types.LongType.get()),
                                   NestedField.optional(2, "part", Types.StringType.get()));
        PartitionSpec spec = PartitionSpec.builderFor(schema).identity("part").build();
        Table table = create("parts", schema, spec, 3);
        Vectors vectors = new Vectors(table, path -> null);
        long id = 0;

        for (String part : new String[] {"a", "b/\u00e9", null}) {
            PartitionData partition = new PartitionData(spec.partitionType());
            List<Record> rows = new ArrayList<>();

            partition.set(0, part);
            for (int i = 0; i < 10; i++)
                rows.add(row(table, id++, part));

            DataFile file = data(table, partition, rows);

            table.newAppend().appendFile(file).commit();
            vectors.delete(file, 2, 4);
        }
        vectors.commit();
        done(table);
    }

    /* --- defaults --------------------------------------------------------------------------- */

    static void defaults() throws Exception {
        Schema schema = new Schema(NestedField.required(1, "id", Types.LongType.get()));
        Table table = create("defaults", schema, PartitionSpec.unpartitioned(), 3);

        table.newAppend().appendFile(data(table, null, List.of(row(table, 1L)))).commit();

        UpdateSchema update = table.updateSchema()
            .addRequiredColumn("flag", Types.BooleanType.get(), Literal.of(true))
            .addColumn("small", Types.IntegerType.get(), Literal.of(Integer.MIN_VALUE))
            .addColumn("big", Types.LongType.get(), Literal.of(Long.MAX_VALUE))
            .addColumn("real", Types.FloatType.get(), Literal.of(0.1f))
            .addColumn("wide", Types.DoubleType.get(), Literal.of(-1.0 / 3))
            .addColumn("price", Types.DecimalType.of(9, 2),
                       Literal.of(new BigDecimal("-14.20")).to(Types.DecimalType.of(9, 2)))
            .addColumn("huge", Types.DecimalType.of(38, 4),
                       Literal.of(new BigDecimal("1234567890123456789012345678901234.5678"))
                           .to(Types.DecimalType.of(38, 4)))
            .addColumn("day", Types.DateType.get(),
                       Literal.of("1969-12-31").to(Types.DateType.get()))
            .addColumn("at", Types.TimeType.get(),
                       Literal.of("22:31:08.123456").to(Types.TimeType.get()))
            .addColumn("stamp", Types.TimestampType.withoutZone(),
                       Literal.of("2017-11-16T22:31:08").to(Types.TimestampType.withoutZone()))
            .addColumn("stamp_tz", Types.TimestampType.withZone(),
                       Literal.of("2017-11-16T14:31:08.000001-08:00")
                           .to(Types.TimestampType.withZone()))
            .addColumn("text", Types.StringType.get(), Literal.of("it's \"\u00e9\\\u2028\n"))
            .addColumn("empty", Types.StringType.get(), Literal.of(""))
            .addColumn("uid", Types.UUIDType.get(),
                       Literal.of("f79c3e09-677c-4bbd-a479-3f349cb785e7").to(Types.UUIDType.get()))
            .addColumn("fix", Types.FixedType.ofLength(3),
                       Literal.of(ByteBuffer.wrap(new byte[] {0, -1, 39}))
                           .to(Types.FixedType.ofLength(3)))
            .addColumn("raw", Types.BinaryType.get(),
                       Literal.of(ByteBuffer.wrap(new byte[] {0, 92, 120, -128})))
            .addColumn("none", Types.StringType.get());

        update.commit();
        table.refresh();
        /* what rows get that have no value, which is another thing */
        table.updateSchema().updateColumnDefault("small", Literal.of(77)).commit();
        table.newAppend().appendFile(data(table, null, List.of(
            row(table, 2L, false, 1, 2L, 0.5f, 0.25, new BigDecimal("1.00"),
                new BigDecimal("2.0000"), LocalDate.EPOCH, LocalTime.MIDNIGHT,
                LocalDateTime.parse("1970-01-01T00:00:00"),
                OffsetDateTime.parse("1970-01-01T00:00:00Z"), "given", "x",
                UUID.fromString("00000000-0000-0000-0000-000000000001"), new byte[] {1, 2, 3},
                ByteBuffer.wrap(new byte[] {4}), "n"),
            row(table, 3L, true)))).commit();
        done(table);
    }

    static Record struct(Types.StructType type, Object... values) {
        Record record = GenericRecord.create(type);

        for (int i = 0; i < values.length; i++)
            record.set(i, values[i]);
        return record;
    }

    static void nested() throws Exception {
        Types.StructType pair = Types.StructType.of(
            NestedField.optional(10, "a", Types.IntegerType.get()),
            NestedField.optional(11, "b", Types.StringType.get()));
        Types.StructType item = Types.StructType.of(
            NestedField.optional(12, "q", Types.IntegerType.get()));
        Types.StructType value = Types.StructType.of(
            NestedField.optional(13, "v", Types.IntegerType.get()));
        Schema schema = new Schema(
            NestedField.required(1, "id", Types.LongType.get()),
            NestedField.optional(2, "pair", pair),
            NestedField.optional(3, "items", Types.ListType.ofOptional(4, item)),
            NestedField.optional(5, "named",
                Types.MapType.ofOptional(6, 7, Types.StringType.get(), value)));
        Table table = create("nested", schema, PartitionSpec.unpartitioned(), 3);
        Types.StructType pairs = table.schema().findType("pair").asStructType();
        Types.StructType items = table.schema().findType("items.element").asStructType();
        Types.StructType values = table.schema().findType("named.value").asStructType();
        List<Record> list = new ArrayList<>();

        list.add(struct(items, 1));
        list.add(null);
        list.add(struct(items, (Object) null));
        table.newAppend().appendFile(data(table, null, List.of(
            row(table, 1L, struct(pairs, 5, "five"), list, Map.of("k", struct(values, 6))),
            row(table, 2L, null, List.of(), Map.of()),
            row(table, 3L, struct(pairs, null, null), null, null)))).commit();
        table.updateSchema()
            .addColumn("pair", "c", Types.DateType.get(),
                       Literal.of("2017-11-16").to(Types.DateType.get()))
            .addColumn("pair", "d", Types.IntegerType.get())
            .addColumn("items.element", "r", Types.StringType.get(), Literal.of("r'r"))
            .addColumn("named.value", "w", Types.DoubleType.get(), Literal.of(0.5))
            .renameColumn("pair.a", "z").updateColumn("pair.a", Types.LongType.get())
            .moveFirst("pair.b").commit();
        table.updateSchema().addColumn("pair", "a", Types.StringType.get(), Literal.of("new"))
            .deleteColumn("pair.d").commit();
        pairs = table.schema().findType("pair").asStructType();
        items = table.schema().findType("items.element").asStructType();
        values = table.schema().findType("named.value").asStructType();
        table.newAppend().appendFile(data(table, null, List.of(
            row(table, 4L, struct(pairs, "bb", 1L << 40, LocalDate.EPOCH, "aa"),
                List.of(struct(items, 2, "s")), Map.of("m", struct(values, 7, 1.5)))))).commit();
        done(table);
    }

    /* --- types ------------------------------------------------------------------------------ */

    static void one(String name, Type type) throws Exception {
        Schema schema = new Schema(NestedField.required(1, "id", Types.LongType.get()),
                                   NestedField.optional(2, "v", type));

        done(create(name, schema, PartitionSpec.unpartitioned(), 3));
    }
}
