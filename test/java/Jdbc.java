/* Jdbc - what pgjdbc gets from the query server. usage: java -cp postgresql.jar Jdbc.java PORT
 * Asks for every type often enough that the driver goes over to prepared statements and binary
 * values; reads two results in pieces at once; prints what the metadata calls give. One line each,
 * "name: value", for the test to compare. */
import java.math.BigDecimal;
import java.sql.*;
import java.util.*;

public class Jdbc {
    static void say(String name, Object value) {
        System.out.println(name + ": " + value);
    }

    static String row(ResultSet rs) throws SQLException {
        StringBuilder out = new StringBuilder();
        ResultSetMetaData meta = rs.getMetaData();
        for (int i = 1; i <= meta.getColumnCount(); i++) {
            Object value = rs.getObject(i);
            if (value instanceof byte[]) value = "bytes" + Arrays.toString((byte[]) value);
            if (value instanceof java.sql.Array) value = Arrays.toString((Object[]) ((java.sql.Array) value).getArray());
            if (value instanceof String) value = ((String) value).replace("\n", "\\n");
            if (value instanceof Timestamp) value = ((Timestamp) value).toInstant().toString();
            out.append(i == 1 ? "" : "|").append(value);
        }
        return out.toString();
    }

    static void types(Connection c) throws SQLException {
        String sql = "select id, flag, small, real, wide, price, day, at_tz, name, raw, uid, tags "
            + "from things where id = ?";
        Set<String> seen = new LinkedHashSet<>();
        try (PreparedStatement s = c.prepareStatement(sql)) {
            for (int i = 0; i < 12; i++) { /* prepared after 5, then with binary values */
                s.setLong(1, 1);
                try (ResultSet rs = s.executeQuery()) {
                    while (rs.next()) seen.add(row(rs));
                }
            }
            ResultSetMetaData meta = s.getMetaData();
            StringBuilder names = new StringBuilder();
            for (int i = 1; i <= meta.getColumnCount(); i++)
                names.append(meta.getColumnTypeName(i)).append(' ');
            say("types", names.toString().trim());
        }
        for (String line : seen) say("row", line);
    }

    static void parameters(Connection c) throws SQLException {
        try (PreparedStatement s = c.prepareStatement(
                 "select id from things where price = ? and name like ? and at_tz < ? and flag = ? "
                 + "and uid = ? and small = ? and wide = ? and day = ? and raw = ?")) {
            for (int i = 0; i < 8; i++) {
                s.setBigDecimal(1, new BigDecimal("1234567890.10"));
                s.setString(2, "h%");
                s.setTimestamp(3, Timestamp.valueOf("2026-06-01 00:00:00"));
                s.setBoolean(4, true);
                s.setObject(5, new UUID(0, 5));
                s.setInt(6, -2);
                s.setDouble(7, -0.0);
                s.setObject(8, java.time.LocalDate.of(1, 1, 1));
                s.setBytes(9, new byte[] {0, (byte) 255});
                try (ResultSet rs = s.executeQuery()) {
                    say("found", rs.next() ? rs.getLong(1) : null);
                }
            }
        }
    }

    static void pieces(Connection c) throws SQLException {
        c.setAutoCommit(false);
        try (Statement a = c.createStatement(); Statement b = c.createStatement()) {
            a.setFetchSize(100);
            b.setFetchSize(7);
            ResultSet x = a.executeQuery("select i from generate_series(1, 5000) i order by 1");
            ResultSet y = b.executeQuery("select i from generate_series(1, 5000) i order by 1 desc");
            long sum = 0;
            int count = 0;
            while (x.next() && y.next()) {
                sum += x.getLong(1) + y.getLong(1);
                count++;
            }
            say("pieces", count + " " + sum);
            Statement limited = c.createStatement();
            limited.setMaxRows(3);
            ResultSet z = limited.executeQuery("select i from generate_series(1, 100000000) i");
            int rows = 0;
            while (z.next()) rows++;
            say("limited", rows);
        }
        c.commit();
        c.setAutoCommit(true);
    }

    static void metadata(Connection c) throws SQLException {
        DatabaseMetaData meta = c.getMetaData();
        say("version", meta.getDatabaseMajorVersion());
        try (ResultSet rs = meta.getTables(null, "public", "%", new String[] {"TABLE"})) {
            while (rs.next()) say("table", rs.getString("TABLE_SCHEM") + "." + rs.getString("TABLE_NAME"));
        }
        try (ResultSet rs = meta.getColumns(null, "public", "things", "pri%")) {
            while (rs.next())
                say("column", rs.getString("COLUMN_NAME") + " " + rs.getString("TYPE_NAME") + " "
                    + rs.getInt("COLUMN_SIZE") + " " + rs.getInt("DECIMAL_DIGITS"));
        }
        try (ResultSet rs = meta.getSchemas()) {
            while (rs.next()) say("schema", rs.getString(1));
        }
    }

    static void errors(Connection c) throws SQLException {
        String[] statements = {"selec 1", "select * from nope", "insert into things values (1)"};
        for (String sql : statements) {
            try (Statement s = c.createStatement()) {
                s.execute(sql);
            } catch (SQLException e) {
                say("error", e.getSQLState());
            }
        }
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery("select sum(a.x * b.x) from range(3000000) a(x), range(3000000) b(x)");
        } catch (SQLException e) {
            say("error", e.getSQLState());
        }
    }

    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("Europe/Berlin")); /* not the server's */
        String url = "jdbc:postgresql://127.0.0.1:" + args[0] + "/shop?user=ann";
        try (Connection c = DriverManager.getConnection(url)) {
            c.setReadOnly(true);
            types(c);
            parameters(c);
            pieces(c);
            metadata(c);
            errors(c);
            try (Statement s = c.createStatement(); ResultSet rs = s.executeQuery("select 1")) {
                say("alive", rs.next());
            }
        }
    }
}
