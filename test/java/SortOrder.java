/* SortOrder.java - the default sort order of a table, as the reference Java library loads it.
 *
 *     SortOrder METADATA...      locations of metadata.json files
 *
 * One line each: "id: transform(column) direction nulls, ..." */
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.hadoop.HadoopFileIO;

public class SortOrder {
    public static void main(String[] args) {
        HadoopFileIO io = new HadoopFileIO(new Configuration());

        for (String location : args) {
            TableMetadata table = TableMetadataParser.read(io, location);

            System.out.println(table.sortOrder().orderId() + ": "
                + table.sortOrder().fields().stream()
                    .map(f -> f.transform() + "(" + table.schema().findColumnName(f.sourceId())
                        + ") " + f.direction() + " " + f.nullOrder())
                    .collect(Collectors.joining(", ")));
        }
    }
}
