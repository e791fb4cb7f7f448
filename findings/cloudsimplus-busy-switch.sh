#!/bin/sh
# A switch of CloudSim Plus 8.5.7 (Maven Central), a simulator of clouds and their networks, starts its switching delay
# again with each packet that comes (processPacketUp and processPacketDown in AbstractSwitch.java cancel what was due
# and set the delay anew). So while packets come more often than that, every 1.57 ms for the default edge switch, it
# forwards none, however slow the stream is for its ports; when they stop, all arrive at one instant. Delays and
# throughput of a busy network are those of its pauses. By its documentation (Switch.getSwitchingDelay) this is the time
# that the switch spends on a packet, "constant no matter how many packets the switch have to process". Nothing is said.
#
# Seen, 1000 packets of 1500 bytes between two hosts of an edge switch of 800 Mbit/s: every 1.6 ms, 1.58 ms under way
# each; every 1.5 ms, 8 Mbit/s, all at one time, the first after 1514 ms and the last after 16.
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
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.cloudsimplus.cloudlets.network.NetworkCloudlet;
import org.cloudsimplus.core.CloudSimEntity;
import org.cloudsimplus.core.CloudSimPlus;
import org.cloudsimplus.core.CloudSimTag;
import org.cloudsimplus.core.events.SimEvent;
import org.cloudsimplus.datacenters.network.NetworkDatacenter;
import org.cloudsimplus.hosts.network.NetworkHost;
import org.cloudsimplus.network.HostPacket;
import org.cloudsimplus.network.VmPacket;
import org.cloudsimplus.network.switches.EdgeSwitch;
import org.cloudsimplus.resources.PeSimple;
import org.cloudsimplus.vms.network.NetworkVm;
import org.slf4j.LoggerFactory;

class Run {
    static final int COUNT = 1000, SIZE = 1500; // packets, bytes

    /** A host that notes when packets come. */
    static class Host extends NetworkHost {
        final List<Double> times = new ArrayList<>();

        Host() {
            super(8192, 10_000, 100_000, List.of(new PeSimple(1000)));
        }

        @Override
        public void addReceivedNetworkPacket(HostPacket packet) {
            times.add(getSimulation().clock());
        }
    }

    /** Sends packets to a switch as a host does. */
    static class Source extends CloudSimEntity {
        final EdgeSwitch edge;
        final HostPacket packet;
        final double spacing;

        Source(CloudSimPlus simulation, EdgeSwitch edge, HostPacket packet, double spacing) {
            super(simulation);
            this.edge = edge;
            this.packet = packet;
            this.spacing = spacing;
        }

        @Override
        protected void startInternal() {
            for (int index = 0; index < COUNT; index++) {
                schedule(edge, index * spacing, CloudSimTag.NETWORK_EVENT_UP, packet);
            }
        }

        @Override
        public void processEvent(SimEvent event) {}
    }

    /** How long the first and the last packet are under way, in ms. */
    static String run(double spacing) {
        CloudSimPlus simulation = new CloudSimPlus();
        Host from = new Host(), to = new Host();
        EdgeSwitch edge = new EdgeSwitch(simulation, new NetworkDatacenter(simulation, List.of(from, to)));
        edge.connectHost(from);
        edge.connectHost(to);
        NetworkVm sender = new NetworkVm(1000, 1), receiver = new NetworkVm(1000, 1);
        sender.setHost(from);
        receiver.setHost(to);
        NetworkCloudlet task = new NetworkCloudlet(1000, 1);
        HostPacket packet = new HostPacket(from, new VmPacket(sender, receiver, SIZE, task, task));
        new Source(simulation, edge, packet, spacing);
        simulation.start();
        double first = to.times.get(0), last = to.times.get(to.times.size() - 1) - (COUNT - 1) * spacing;
        return String.format(Locale.ROOT, "%d packets, first after %.2f ms, last after %.2f ms",
            to.times.size(), first * 1000, last * 1000);
    }

    public static void main(String[] arguments) {
        ((Logger) LoggerFactory.getLogger("ROOT")).setLevel(Level.OFF);
        double[] spacings = {0.01, 0.0016, 0.0015, 0.001};
        String[] expected = {
            "1000 packets, first after 1.58 ms, last after 1.58 ms",
            "1000 packets, first after 1.58 ms, last after 1.58 ms",
            "1000 packets, first after 1514.38 ms, last after 15.88 ms",
            "1000 packets, first after 1014.88 ms, last after 15.88 ms",
        };
        boolean changed = false;
        for (int index = 0; index < spacings.length; index++) {
            String told = run(spacings[index]);
            System.out.printf(Locale.ROOT, "every %.1f ms: %s%n", spacings[index] * 1000, told);
            changed |= !told.equals(expected[index]);
        }
        System.exit(changed ? 1 : 0);
    }
}
END
java -cp 'lib/*' Run.java
