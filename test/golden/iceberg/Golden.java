// Golden.java - make the golden tables of this folder with the reference library.
//
// usage: java -cp <iceberg-core, iceberg-data, hadoop-client> Golden.java OUT
//
// Only metadata: the data files it names do not exist. For each table it copies what is in its
// metadata folder, and writes entries.txt, which says what the library itself reads there.
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.*;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class Golden {
  static final String ROOT = "/tmp/iceberg-golden/";
  static final HadoopTables TABLES = new HadoopTables(new Configuration());
  static Path out;

  static final Schema SCHEMA = new Schema(
      Types.NestedField.required(1, "id", Types.LongType.get(), "bigint"),
      Types.NestedField.optional(2, "name", Types.StringType.get()),
      Types.NestedField.optional(3, "price", Types.DecimalType.of(9, 2)),
      Types.NestedField.optional(4, "at", Types.TimestampType.withZone()),
      Types.NestedField.optional(5, "u", Types.UUIDType.get()),
      Types.NestedField.optional(6, "fx", Types.FixedType.ofLength(4)),
      Types.NestedField.optional(7, "f", Types.FloatType.get()),
      Types.NestedField.optional(8, "day", Types.DateType.get()),
      Types.NestedField.optional(9, "l", Types.ListType.ofOptional(20, Types.IntegerType.get())),
      Types.NestedField.optional(10, "m", Types.MapType.ofOptional(21, 22, Types.StringType.get(),
          Types.StructType.of(Types.NestedField.required(23, "x", Types.DoubleType.get())))));

  static ByteBuffer bytes(int id, Object value) {
    return Conversions.toByteBuffer(SCHEMA.findType(id), value);
  }

  static Metrics metrics(long rows) {
    return new Metrics(rows, Map.of(1, 100L, 2, 200L), Map.of(1, rows, 2, rows, 7, rows),
        Map.of(1, 0L, 2, 1L, 7, 2L), Map.of(7, 1L),
        Map.of(1, bytes(1, 5L), 2, bytes(2, "a"), 7, bytes(7, -0.0f)),
        Map.of(1, bytes(1, 1234567890123L), 2, bytes(2, "b\u20ac"), 7, bytes(7, 1.5f)));
  }

  static DataFile data(Table table, String name, long rows, PartitionData partition) {
    DataFiles.Builder builder = DataFiles.builder(table.spec())
        .withPath(table.location() + "/data/" + name).withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(1000 + rows).withMetrics(metrics(rows))
        .withSplitOffsets(List.of(4L, 500L));
    return (partition == null ? builder : builder.withPartition(partition)).build();
  }

  static FileMetadata.Builder deletes(Table table, String name, long rows, PartitionData partition) {
    FileMetadata.Builder builder = FileMetadata.deleteFileBuilder(table.spec())
        .withPath(table.location() + "/data/" + name).withFileSizeInBytes(500).withRecordCount(rows);
    return partition == null ? builder : builder.withPartition(partition);
  }

  static Table create(String name, Schema schema, PartitionSpec spec, int version) {
    return TABLES.create(schema, spec, SortOrder.unsorted(),
        Map.of("format-version", "" + version, "owner", "golden"), ROOT + name);
  }

  static void plain(String name, int version) throws Exception {
    Table table = create(name, SCHEMA, PartitionSpec.unpartitioned(), version);
    DataFile a = data(table, "a.parquet", 10, null);
    DataFile b = data(table, "b.parquet", 20, null);
    table.newAppend().appendFile(a).appendFile(b).commit();
    table.manageSnapshots().createTag("first", table.currentSnapshot().snapshotId()).commit();
    table.newDelete().deleteFile(b).commit();
    table.updateSchema().addColumn("extra", Types.IntegerType.get()).renameColumn("name", "title")
        .commit();
    table.newAppend().appendFile(data(table, "c.parquet", 30, null)).commit();
    table.rewriteManifests().clusterBy(f -> 1).commit();
    save(name, table);
  }

  static PartitionData tuple(Table table, Object... values) {
    PartitionData data = new PartitionData(table.spec().partitionType());
    for (int i = 0; i < values.length; i++) data.set(i, values[i]);
    return data;
  }

  // Not by the fixed column: 1.12.0 writes such a value with a length in front, against its own schema.
  static void partitioned() throws Exception {
    PartitionSpec spec = PartitionSpec.builderFor(SCHEMA).bucket("id", 16).truncate("name", 3)
        .identity("price").day("at").identity("u").identity("f").year("day")
        .identity("name", "0 odd/\u00e9").build();
    Table table = create("java-partitioned", SCHEMA, spec, 2);
    table.replaceSortOrder().asc("id").commit();
    PartitionData one = tuple(table, 3, "abc", new BigDecimal("-12.34"), 19000,
        new UUID(0x8000000000000001L, 2), Float.NaN, 53, "");
    PartitionData two = tuple(table, 15, null, new BigDecimal("9999999.99"), -1,
        new UUID(1, 0xF000000000000002L), 1.25f, null, "zz");
    DataFile a = data(table, "a.parquet", 10, one);
    table.newAppend().appendFile(a).appendFile(data(table, "b.parquet", 20, two)).commit();
    table.newRowDelta()
        .addRows(data(table, "c.parquet", 5, one))
        .addDeletes(deletes(table, "pos.parquet", 2, one).ofPositionDeletes()
            .withFormat(FileFormat.PARQUET).withReferencedDataFile(a.location()).build())
        .addDeletes(deletes(table, "eq.parquet", 3, two).ofEqualityDeletes(1, 2)
            .withFormat(FileFormat.PARQUET).build())
        .commit();
    table.newDelete().deleteFile(a).commit();
    table.updateSpec().removeField("name_trunc").addField("f2",
        org.apache.iceberg.expressions.Expressions.bucket("u", 4)).commit();
    save("java-partitioned", table);
  }

  static void version3() throws Exception {
    Schema schema = new Schema(
        Types.NestedField.required(1, "id", Types.LongType.get()),
        Types.NestedField.optional("d").withId(2).ofType(Types.IntegerType.get())
            .withInitialDefault(Literal.of(7)).withWriteDefault(Literal.of(8)).build(),
        Types.NestedField.optional(3, "v", Types.VariantType.get()),
        Types.NestedField.optional(4, "ns", Types.TimestampNanoType.withZone()));
    PartitionSpec spec = PartitionSpec.builderFor(schema).identity("ns").build();
    Table table = create("java-v3", schema, spec, 3);
    PartitionData one = tuple(table, 1234567890123456789L);
    DataFile a = data(table, "a.parquet", 10, one);
    table.newAppend().appendFile(a).appendFile(data(table, "b.parquet", 20, one)).commit();
    table.newRowDelta().addDeletes(deletes(table, "dv.puffin", 4, one).ofPositionDeletes()
        .withFormat(FileFormat.PUFFIN).withReferencedDataFile(a.location()).withContentOffset(4)
        .withContentSizeInBytes(50).build()).commit();
    table.newAppend().appendFile(data(table, "c.parquet", 5, one)).commit();
    save("java-v3", table);
  }

  // Metadata only: every order is the default once, then none, then the first again.
  static void sorted() throws Exception {
    SortOrder first = SortOrder.builderFor(SCHEMA).desc("at").asc("id").build();
    Table table = TABLES.create(SCHEMA, PartitionSpec.unpartitioned(), first,
        Map.of("format-version", "2"), ROOT + "java-sorted");
    table.replaceSortOrder().asc("name", NullOrder.NULLS_LAST).desc("f", NullOrder.NULLS_FIRST)
        .commit();
    table.replaceSortOrder()
        .desc(org.apache.iceberg.expressions.Expressions.day("at"))
        .asc(org.apache.iceberg.expressions.Expressions.bucket("id", 16))
        .asc(org.apache.iceberg.expressions.Expressions.truncate("name", 3), NullOrder.NULLS_LAST)
        .commit();
    table.updateSchema().renameColumn("name", "title").commit();
    table.replaceSortOrder().commit();
    table.replaceSortOrder().desc("at").asc("id").commit();
    save("java-sorted", table);
  }

  // --- What the library reads ----------------------------------------------------------------

  static String hex(ByteBuffer value) {
    if (value == null) return "null";
    StringBuilder b = new StringBuilder("x");
    ByteBuffer copy = value.duplicate();
    while (copy.hasRemaining()) b.append(String.format("%02x", copy.get()));
    return b.toString();
  }

  static String map(Map<Integer, ?> map) {
    if (map == null) return "null";
    StringBuilder b = new StringBuilder("{");
    new TreeMap<>(map).forEach((k, v) -> b.append(k).append('=')
        .append(v instanceof ByteBuffer ? hex((ByteBuffer) v) : v).append(' '));
    return b.append('}').toString();
  }

  static void entry(PrintStream print, String status, ContentFile<?> f, PartitionSpec spec) {
    StringBuilder tuple = new StringBuilder();
    List<Types.NestedField> fields = spec.partitionType().fields();
    for (int i = 0; i < fields.size(); i++) {
      Type type = fields.get(i).type();
      Object value = f.partition().get(i, Object.class);
      tuple.append(hex(value == null ? null : Conversions.toByteBuffer(type, value))).append(' ');
    }
    print.printf("%s seq=%s fileseq=%s content=%d path=%s format=%s records=%d bytes=%d sort=%s%n",
        status, f.dataSequenceNumber(), f.fileSequenceNumber(), f.content().id(), f.location(),
        f.format(), f.recordCount(), f.fileSizeInBytes(), f.sortOrderId());
    print.printf("  partition=%s%n  sizes=%s values=%s nulls=%s nans=%s%n  lower=%s upper=%s%n",
        tuple, map(f.columnSizes()), map(f.valueCounts()), map(f.nullValueCounts()),
        map(f.nanValueCounts()), map(f.lowerBounds()), map(f.upperBounds()));
    print.printf("  splits=%s equality=%s firstrow=%s", f.splitOffsets(), f.equalityFieldIds(),
        f.firstRowId());
    if (f instanceof DeleteFile) {
      DeleteFile d = (DeleteFile) f;
      print.printf(" referenced=%s offset=%s size=%s", d.referencedDataFile(), d.contentOffset(),
          d.contentSizeInBytes());
    }
    print.println();
  }

  static void manifest(PrintStream print, Table table, ManifestFile m) throws Exception {
    StringBuilder parts = new StringBuilder();
    if (m.partitions() != null)
      for (ManifestFile.PartitionFieldSummary p : m.partitions())
        parts.append(p.containsNull()).append(',').append(p.containsNaN()).append(',')
            .append(hex(p.lowerBound())).append(',').append(hex(p.upperBound())).append(' ');
    print.printf("manifest %s content=%d spec=%d seq=%d min=%d snapshot=%d files=%d,%d,%d "
        + "rows=%d,%d,%d firstrow=%s partitions=%s%n",
        Path.of(m.path()).getFileName(), m.content().id(), m.partitionSpecId(), m.sequenceNumber(),
        m.minSequenceNumber(), m.snapshotId(), m.addedFilesCount(), m.existingFilesCount(),
        m.deletedFilesCount(), m.addedRowsCount(), m.existingRowsCount(), m.deletedRowsCount(),
        m.firstRowId(), parts);
    PartitionSpec spec = table.specs().get(m.partitionSpecId());
    // live entries only: the library shows deleted ones to nobody outside its package
    if (m.content() == ManifestContent.DATA) {
      try (ManifestReader<DataFile> r = ManifestFiles.read(m, table.io(), table.specs())) {
        for (DataFile f : r) entry(print, "live", f, spec);
      }
    } else {
      try (ManifestReader<DeleteFile> r =
          ManifestFiles.readDeleteManifest(m, table.io(), table.specs())) {
        for (DeleteFile f : r) entry(print, "live", f, spec);
      }
    }
  }

  static void save(String name, Table table) throws Exception {
    Path to = out.resolve(name);
    table.refresh();
    Files.createDirectories(to);
    try (Stream<Path> files = Files.list(Path.of(ROOT + name + "/metadata"))) {
      for (Path f : (Iterable<Path>) files::iterator)
        if (!f.getFileName().toString().startsWith(".")) Files.copy(f, to.resolve(f.getFileName()));
    }
    try (PrintStream print = new PrintStream(to.resolve("entries.txt").toFile(), "UTF-8")) {
      for (Snapshot s : table.snapshots()) {
        print.printf("list %s%n", Path.of(s.manifestListLocation()).getFileName());
        for (ManifestFile m : s.allManifests(table.io())) manifest(print, table, m);
      }
    }
  }

  static void clear(Path path) throws Exception {
    if (!Files.exists(path)) return;
    try (Stream<Path> files = Files.walk(path)) {
      for (Path f : (Iterable<Path>) files.sorted(Comparator.reverseOrder())::iterator) Files.delete(f);
    }
  }

  public static void main(String[] args) throws Exception {
    out = Path.of(args[0]);
    clear(Path.of(ROOT));
    for (String name : List.of("java-v1", "java-v2", "java-partitioned", "java-sorted", "java-v3"))
      clear(out.resolve(name));
    plain("java-v1", 1);
    plain("java-v2", 2);
    partitioned();
    sorted();
    version3();
    clear(Path.of(ROOT));
  }
}
