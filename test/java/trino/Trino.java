/* Trino.java - a coordinator with catalog "ice" on a port: Trino PORT [catalog-property=value]... */
import io.trino.plugin.iceberg.IcebergPlugin;
import io.trino.testing.DistributedQueryRunner;
import io.trino.testing.TestingSession;
import java.util.HashMap;
import java.util.Map;

public class Trino {
    public static void main(String[] args) throws Exception {
        DistributedQueryRunner runner =
            DistributedQueryRunner
                .builder(TestingSession.testSessionBuilder().setCatalog("ice").build())
                .setWorkerCount(0)
                .addCoordinatorProperty("http-server.http.port", args[0])
                .build();
        Map<String, String> settings = new HashMap<>();

        settings.put("fs.local.enabled", "true");
        settings.put("local.location", "/");
        settings.put("iceberg.register-table-procedure.enabled", "true");
        for (int i = 1; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);

            settings.put(pair[0], pair[1]);
        }
        runner.installPlugin(new IcebergPlugin());
        runner.createCatalog("ice", "iceberg", settings);
        System.out.println("READY " + runner.getCoordinator().getBaseUrl());
        Thread.currentThread().join();
    }
}
