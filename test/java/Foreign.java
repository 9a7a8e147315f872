/* Foreign.java - what engines do to a table that another program streams into, done with the
 * reference Java library: HadoopTables, which Spark's Hadoop catalog stands on, too.
 *
 * Reads lines from stdin until it ends, FOLDER COMMAND [ARGUMENT]..., and answers each with one
 * line, "done SNAPSHOT" (of the main branch then) or "error ...":
 *
 *   compact              the live rows in new data files, one for each partition of the spec;
 *                        the old data files go, and so do the vectors and delete files on them
 *   compact dangling     the same, but the position delete files of version 2 stay, as Spark's
 *                        rewrite_data_files leaves them
 *   delete ID...         rows by id: a position delete file (version 2), or deletion vectors with
 *                        the old ones merged in (version 3)
 *   overwrite-file ID    the same for one row by copy-on-write: its data file is written anew
 *   add-column NAME, drop-column NAME, rename-column NAME NEW
 *   add-spec-field NAME  identity(NAME)
 *   rewrite-manifests    all data manifests as one
 *   expire               all snapshots but the last of each branch, and the files that nobody needs
 *   tag NAME             on the current snapshot
 *   branch NAME          with a commit of its own, which removes all rows
 *
 * Under version 3 rows that move carry _row_id and _last_updated_sequence_number: IcebergGenerics
 * reads them, also where they are inherited, and GenericParquetWriter writes them. As Spark does,
 * compacted files take the sequence number that the table had when they were read. */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.DataFileSet;
import org.apache.iceberg.util.DeleteFileSet;

public class Foreign {
    final Table table;
    final boolean vectors;
    final Schema stored; /* of what is written: with the row lineage of version 3 */
    final Map<String, FileScanTask> tasks = new HashMap<>(); /* of live data files, by path */

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        HadoopTables tables = new HadoopTables(new Configuration());

        for (String line = in.readLine(); line != null; line = in.readLine()) {
            List<String> words = Arrays.asList(line.split(" "));

            try {
                Table table = tables.load(words.get(0));

                new Foreign(table).run(words.get(1), words.subList(2, words.size()));
                table.refresh();
                System.out.println("done " + table.currentSnapshot().snapshotId());
            } catch (Exception | StackOverflowError e) {
                System.out.println("error " + String.valueOf(e).replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    Foreign(Table table) throws Exception {
        this.table = table;
        vectors = TableUtil.formatVersion(table) >= 3;
        stored = vectors ? MetadataColumns.schemaWithRowLineage(table.schema()) : table.schema();
        try (CloseableIterable<FileScanTask> files = table.newScan().planFiles()) {
            files.forEach(task -> tasks.put(task.file().location(), task));
        }
    }

    void run(String command, List<String> args) throws Exception {
        switch (command) {
            case "compact" -> compact(args.isEmpty());
            case "delete" -> delete(ids(args));
            case "overwrite-file" -> overwrite(ids(args));
            case "add-column" ->
                table.updateSchema().addColumn(args.get(0), Types.StringType.get()).commit();
            case "drop-column" -> table.updateSchema().deleteColumn(args.get(0)).commit();
            case "rename-column" ->
                table.updateSchema().renameColumn(args.get(0), args.get(1)).commit();
            case "add-spec-field" -> table.updateSpec().addField(args.get(0)).commit();
            case "rewrite-manifests" -> table.rewriteManifests().clusterBy(file -> "").commit();
            case "expire" -> table.expireSnapshots().expireOlderThan(System.currentTimeMillis())
                .retainLast(1).commit();
            case "tag" -> table.manageSnapshots()
                .createTag(args.get(0), table.currentSnapshot().snapshotId()).commit();
            case "branch" -> {
                table.manageSnapshots().createBranch(args.get(0)).commit();
                table.newDelete().toBranch(args.get(0))
                    .deleteFromRowFilter(Expressions.alwaysTrue()).commit();
            }
            default -> throw new IllegalArgumentException(command);
        }
    }

    static Set<String> ids(List<String> args) {
        return new HashSet<>(args);
    }

    /* --- rows ------------------------------------------------------------------------------- */

    /* Live rows with columns of ours and where they are. */
    List<Record> rows(Schema columns, Predicate<Record> wanted) throws Exception {
        Schema schema = TypeUtil.join(columns, new Schema(MetadataColumns.FILE_PATH,
                                                          MetadataColumns.ROW_POSITION));
        List<Record> found = new ArrayList<>();

        try (CloseableIterable<Record> all = IcebergGenerics.read(table).project(schema).build()) {
            for (Record row : all)
                if (wanted.test(row))
                    found.add(row);
        }
        return found;
    }

    static String path(Record row) {
        return (String) row.getField(MetadataColumns.FILE_PATH.name());
    }

    static long position(Record row) {
        return (Long) row.getField(MetadataColumns.ROW_POSITION.name());
    }

    static boolean has(Set<String> ids, Record row) {
        return ids.contains(String.valueOf(row.getField("id")));
    }

    /* One data file of each partition that these rows have by the current spec. */
    DataFileSet write(List<Record> rows) throws Exception {
        PartitionKey key = new PartitionKey(table.spec(), table.schema());
        InternalRecordWrapper values = new InternalRecordWrapper(table.schema().asStruct());
        Map<PartitionKey, List<Record>> parts = new LinkedHashMap<>();
        DataFileSet files = DataFileSet.create();

        for (Record row : rows) {
            Record copy = GenericRecord.create(stored);

            stored.columns().forEach(c -> copy.setField(c.name(), row.getField(c.name())));
            key.partition(values.wrap(copy));
            parts.computeIfAbsent(key.copy(), k -> new ArrayList<>()).add(copy);
        }
        for (Map.Entry<PartitionKey, List<Record>> part : parts.entrySet()) {
            OutputFileFactory names = factory(FileFormat.PARQUET);
            DataWriter<Record> writer = Parquet.writeData(table.spec().isUnpartitioned()
                    ? names.newOutputFile() : names.newOutputFile(part.getKey()))
                .schema(stored).createWriterFunc(GenericParquetWriter::create)
                .withSpec(table.spec()).withPartition(part.getKey()).overwrite().build();

            try (writer) {
                part.getValue().forEach(writer::write);
            }
            files.add(writer.toDataFile());
        }
        return files;
    }

    OutputFileFactory factory(FileFormat format) {
        return OutputFileFactory.builderFor(table, 1, System.nanoTime()).format(format).build();
    }

    /* --- commits ---------------------------------------------------------------------------- */

    void compact(boolean deletesToo) throws Exception {
        DataFileSet old = DataFileSet.create();
        DeleteFileSet deletes = DeleteFileSet.create();
        RewriteFiles rewrite = table.newRewrite()
            .validateFromSnapshot(table.currentSnapshot().snapshotId())
            .dataSequenceNumber(table.currentSnapshot().sequenceNumber());

        for (FileScanTask task : tasks.values()) {
            old.add(task.file());
            if (vectors || deletesToo)
                deletes.addAll(task.deletes());
        }
        old.forEach(rewrite::deleteFile);
        deletes.forEach(rewrite::deleteFile);
        write(rows(stored, row -> true)).forEach(rewrite::addFile);
        rewrite.commit();
    }

    void delete(Set<String> ids) throws Exception {
        RowDelta delta = table.newRowDelta();
        List<Record> gone = rows(table.schema(), row -> has(ids, row));

        if (gone.size() != ids.size())
            throw new IllegalArgumentException("not all of them are there");
        delta.validateFromSnapshot(table.currentSnapshot().snapshotId())
            .validateDataFilesExist(gone.stream().map(Foreign::path).distinct().toList())
            .validateDeletedFiles().validateNoConflictingDeleteFiles();
        if (vectors)
            vectors(gone, delta);
        else
            positions(gone, delta);
        delta.commit();
    }

    void vectors(List<Record> gone, RowDelta delta) throws Exception {
        BaseDVFileWriter writer = new BaseDVFileWriter(factory(FileFormat.PUFFIN), this::before);

        try (writer) {
            for (Record row : gone) {
                DataFile file = tasks.get(path(row)).file();

                writer.delete(file.location(), position(row),
                              table.specs().get(file.specId()), file.partition());
            }
        }
        writer.result().deleteFiles().forEach(delta::addDeletes);
        writer.result().rewrittenDeleteFiles().forEach(delta::removeDeletes);
    }

    PositionDeleteIndex before(String path) {
        List<DeleteFile> deletes = tasks.get(path).deletes();

        return deletes.isEmpty() ? null
            : new BaseDeleteLoader(file -> table.io().newInputFile(file.location()))
                .loadPositionDeletes(deletes, path);
    }

    /* A delete file of each data file. */
    void positions(List<Record> gone, RowDelta delta) throws Exception {
        Map<String, List<Record>> byFile = new LinkedHashMap<>();

        gone.forEach(row -> byFile.computeIfAbsent(path(row), k -> new ArrayList<>()).add(row));
        for (Map.Entry<String, List<Record>> rows : byFile.entrySet()) {
            DataFile file = tasks.get(rows.getKey()).file();
            PositionDeleteWriter<Record> writer = Parquet.writeDeletes(
                    file.partition().size() == 0 ? factory(FileFormat.PARQUET).newOutputFile()
                    : factory(FileFormat.PARQUET).newOutputFile(
                        table.specs().get(file.specId()), file.partition()))
                .withSpec(table.specs().get(file.specId())).withPartition(file.partition())
                .overwrite().buildPositionWriter();

            try (writer) {
                for (Record row : rows.getValue())
                    writer.write(PositionDelete.<Record>create().set(path(row), position(row)));
            }
            delta.addDeletes(writer.toDeleteFile());
        }
    }

    void overwrite(Set<String> ids) throws Exception {
        String old = path(rows(table.schema(), row -> has(ids, row)).get(0));
        OverwriteFiles overwrite = table.newOverwrite()
            .validateFromSnapshot(table.currentSnapshot().snapshotId());
        List<DeleteFile> deletes = vectors ? tasks.get(old).deletes() : List.of();

        overwrite.deleteFiles(DataFileSet.of(List.of(tasks.get(old).file())),
                              DeleteFileSet.of(deletes));
        write(rows(stored, row -> path(row).equals(old) && !has(ids, row)))
            .forEach(overwrite::addFile);
        overwrite.commit();
    }
}
