#!/bin/sh
# CloudSim Plus 8.5.7 (Maven Central), a simulator of clouds and their edges, reads topologies from files of the
# generator BRITE and takes the delay of a link for seconds (TopologicalLink, NetworkTopology.getDelay). BRITE writes
# milliseconds: its Edge.cc has 1000 times the length in metres over the speed of light, for a plane in kilometres, and
# ns-3 divides by 1000 (brite-topology-helper.cc). So each message is under way a thousand times too long: over 3000 km
# 10 s, and a task on a machine there, which needs three messages to begin, begins after half a minute. Nothing is said;
# BRITE's manual (table 6) says "propagation delay" without a unit.
#
# Seen, a link of 2998 km with a delay of 10.0 in the file: getDelay 10.0 s; a task that starts at 0.1 s without a
# network starts at 30.1 s, right is 0.1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >pom.xml <<'END'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.cloudsimplus</groupId><artifactId>cloudsimplus</artifactId><version>8.5.7</version>
    </dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib >log 2>&1 || { cat log >&2; exit 2; }
cat >Run.java <<'END'
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.cloudsimplus.brokers.DatacenterBrokerSimple;
import org.cloudsimplus.cloudlets.CloudletSimple;
import org.cloudsimplus.core.CloudSimPlus;
import org.cloudsimplus.datacenters.DatacenterSimple;
import org.cloudsimplus.hosts.HostSimple;
import org.cloudsimplus.network.topologies.BriteNetworkTopology;
import org.cloudsimplus.resources.PeSimple;
import org.cloudsimplus.vms.VmSimple;
import org.slf4j.LoggerFactory;

class Run {
    static final double KILOMETRES = 2998, LIGHT = 299_792_458;

    /** What getDelay says of the link, and when a task of a second starts. */
    static String run(Path topology) {
        CloudSimPlus simulation = new CloudSimPlus();
        HostSimple host = new HostSimple(8192, 10_000, 100_000, List.of(new PeSimple(1000)));
        DatacenterSimple datacenter = new DatacenterSimple(simulation, List.of(host));
        DatacenterBrokerSimple broker = new DatacenterBrokerSimple(simulation);
        double delay = 0;
        if (topology != null) {
            BriteNetworkTopology network = new BriteNetworkTopology(topology.toString());
            simulation.setNetworkTopology(network);
            network.mapNode(broker, 0);
            network.mapNode(datacenter, 1);
            delay = network.getDelay(broker, datacenter);
        }
        CloudletSimple task = new CloudletSimple(1000, 1);
        broker.submitVm(new VmSimple(1000, 1).setRam(512).setBw(100).setSize(1000));
        broker.submitCloudlet(task);
        simulation.start();
        return String.format(Locale.ROOT, "delay %.1f s, start at %.1f s", delay, task.getStartTime());
    }

    public static void main(String[] arguments) throws Exception {
        ((Logger) LoggerFactory.getLogger("ROOT")).setLevel(Level.OFF);
        double milliseconds = 1000 * (1000 * KILOMETRES) / LIGHT;
        Path topology = Files.writeString(Path.of("topology.brite"), String.format(Locale.ROOT, """
            Topology: ( 2 Nodes, 1 Edges )
            Model (1 - RTWaxman):  2 3000 100 1  1  0.15 0.2 1 1 10.0 1024.0

            Nodes: ( 2 )
            0\t0\t0\t1\t1\t-1\tRT_NODE
            1\t%.0f\t0\t1\t1\t-1\tRT_NODE

            Edges: ( 1 )
            0\t0\t1\t%.1f\t%f\t10.0\t-1\t-1\tE_RT\tU
            """, KILOMETRES, KILOMETRES, milliseconds));
        String without = run(null), told = run(topology);
        System.out.println("without a network: " + without);
        System.out.printf(Locale.ROOT, "%.0f km, %.1f ms: %s%n", KILOMETRES, milliseconds, told);
        boolean same = without.equals("delay 0.0 s, start at 0.1 s") && told.equals("delay 10.0 s, start at 30.1 s");
        System.exit(same ? 0 : 1);
    }
}
END
java -cp 'lib/*' Run.java
