/* Read.java - print the rows of Iceberg tables with the reference Java library (generics).
 *
 * Reads one metadata.json location a line from stdin until it ends, so that one JVM serves a whole
 * test run. Answers each with one line a row, a JSON array in the order of the schema's columns,
 * and then one line {"done": rows, "columns": [...], "snapshot": id} or {"error": "..."}.
 *
 * Values: null; booleans and integers as they are; float and double as numbers with a point or an
 * exponent, else "NaN", "Infinity", "-Infinity"; decimal as a plain string; date as days, time and
 * timestamps as microseconds (since 1970); binary as lower hex; uuid as text; a list as array, a
 * map as array of [key, value], a struct as object.
 *
 * s3://: S3_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. */
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class Read {
    static final Configuration CONF = new Configuration();
    static FileIO s3;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

        for (String location = in.readLine(); location != null; location = in.readLine()) {
            try {
                read(open(location), out);
            } catch (Exception | StackOverflowError e) {
                StringBuilder line = new StringBuilder("{\"error\":");
                string(line, String.valueOf(e));
                out.println(line.append('}'));
            }
            out.flush();
        }
    }

    static Table open(String location) {
        FileIO io = location.startsWith("s3") ? s3() : new HadoopFileIO(CONF);

        return new BaseTable(new StaticTableOperations(location, io), location);
    }

    static FileIO s3() {
        if (s3 == null) {
            Map<String, String> settings = new HashMap<>();

            settings.put("s3.endpoint", System.getenv("S3_ENDPOINT"));
            settings.put("s3.path-style-access", "true");
            settings.put("client.region", System.getenv().getOrDefault("AWS_REGION", "us-east-1"));
            s3 = CatalogUtil.loadFileIO("org.apache.iceberg.aws.s3.S3FileIO", settings, CONF);
        }
        return s3;
    }

    static void read(Table table, PrintStream out) throws Exception {
        List<Types.NestedField> columns = table.schema().columns();
        long rows = 0;

        if (table.currentSnapshot() != null) {
            try (CloseableIterable<Record> records = IcebergGenerics.read(table).build()) {
                for (Record record : records) {
                    StringBuilder line = new StringBuilder(256).append('[');

                    for (int i = 0; i < columns.size(); i++) {
                        if (i > 0)
                            line.append(',');
                        value(line, columns.get(i).type(), record.get(i));
                    }
                    out.println(line.append(']'));
                    rows++;
                }
            }
        }

        StringBuilder line = new StringBuilder("{\"done\":").append(rows).append(",\"columns\":[");

        for (int i = 0; i < columns.size(); i++) {
            if (i > 0)
                line.append(',');
            string(line, columns.get(i).name());
        }
        line.append("],\"snapshot\":");
        line.append(table.currentSnapshot() == null ? null : table.currentSnapshot().snapshotId());
        out.println(line.append('}'));
    }

    static void value(StringBuilder line, Type type, Object value) {
        if (value == null) {
            line.append("null");
            return;
        }
        switch (type.typeId()) {
            case BOOLEAN: case INTEGER: case LONG:
                line.append(value);
                break;
            case FLOAT: case DOUBLE: {
                double number = ((Number) value).doubleValue();

                if (Double.isNaN(number) || Double.isInfinite(number))
                    string(line, Double.toString(number));
                else
                    line.append(number);
                break;
            }
            case DECIMAL:
                string(line, ((BigDecimal) value).toPlainString());
                break;
            case DATE:
                line.append(((LocalDate) value).toEpochDay());
                break;
            case TIME:
                line.append(((LocalTime) value).toNanoOfDay() / 1000);
                break;
            case TIMESTAMP:
                line.append(micros(value));
                break;
            case FIXED: case BINARY:
                hex(line, value);
                break;
            case STRUCT: case LIST: case MAP:
                nested(line, type, value);
                break;
            case STRING: case UUID:
                string(line, value.toString());
                break;
            default:
                throw new IllegalArgumentException("no form for " + type);
        }
    }

    static void nested(StringBuilder line, Type type, Object value) {
        int i = 0;

        if (type.isStructType()) {
            line.append('{');
            for (Types.NestedField field : type.asStructType().fields()) {
                if (i > 0)
                    line.append(',');
                string(line, field.name());
                line.append(':');
                value(line, field.type(), ((StructLike) value).get(i++, Object.class));
            }
            line.append('}');
        } else if (type.isListType()) {
            line.append('[');
            for (Object element : (Iterable<?>) value) {
                if (i++ > 0)
                    line.append(',');
                value(line, type.asListType().elementType(), element);
            }
            line.append(']');
        } else {
            line.append('[');
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                line.append(i++ > 0 ? ",[" : "[");
                value(line, type.asMapType().keyType(), entry.getKey());
                line.append(',');
                value(line, type.asMapType().valueType(), entry.getValue());
                line.append(']');
            }
            line.append(']');
        }
    }

    static long micros(Object value) {
        LocalDateTime time = value instanceof OffsetDateTime
            ? ((OffsetDateTime) value).withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime()
            : (LocalDateTime) value;

        return Math.addExact(Math.multiplyExact(time.toEpochSecond(ZoneOffset.UTC), 1000000L),
                             time.getNano() / 1000);
    }

    static void hex(StringBuilder line, Object value) {
        ByteBuffer bytes = value instanceof byte[] ? ByteBuffer.wrap((byte[]) value)
                                                   : ((ByteBuffer) value).duplicate();

        line.append('"');
        while (bytes.hasRemaining())
            line.append(String.format("%02x", bytes.get()));
        line.append('"');
    }

    static void string(StringBuilder line, String text) {
        line.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);

            if (c == '"' || c == '\\')
                line.append('\\').append(c);
            else if (c < 0x20 || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029)
                line.append(String.format("\\u%04x", (int) c));
            else
                line.append(c);
        }
        line.append('"');
    }
}
