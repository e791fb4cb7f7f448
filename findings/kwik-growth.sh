#!/bin/sh
# NewReno of kwik 0.10.9 (Maven Central), QUIC for Java and its only congestion control besides a fixed window, grows by
# 1200 times the acknowledged bytes divided by the window, for each packet and in whole numbers
# (NewRenoCongestionController.java). The rest is dropped each time: from a window of 720 kB on it grows by half as much
# as it should, from 1.44 MB on not at all. So on a path of 600 ms and 50 Mbit/s, which takes 3.75 MB, it is stuck after
# a loss at the half that is left, however long no other comes. Nothing is said. By RFC 9002, 7.3.3 and B.5, the window
# grows by one datagram for each window acknowledged. Slow start and the reduction at a loss are right.
#
# Seen, in 20 round trips after a loss, per round trip: at 100 kB 1047 bytes, at 500 kB 834, at 800 kB 667, at 1.5 MB 0.
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
      <groupId>tech.kwik</groupId><artifactId>kwik</artifactId><version>0.10.9</version>
      <!-- Without its TLS, which congestion control does not use. -->
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib >log 2>&1 || { cat log >&2; exit 2; }
cat >Run.java <<'END'
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.List;
import tech.kwik.core.cc.CongestionControlEventListener;
import tech.kwik.core.cc.NewRenoCongestionController;
import tech.kwik.core.frame.PingFrame;
import tech.kwik.core.impl.Version;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.packet.PacketInfo;
import tech.kwik.core.packet.QuicPacket;
import tech.kwik.core.packet.ShortHeaderPacket;

class Run {
    static final int DATAGRAM = 1200, ROUND_TRIPS = 20;

    static class Packet extends ShortHeaderPacket {
        Packet(long number, int size) {
            super(Version.QUIC_version_1, new byte[8], new PingFrame());
            packetNumber = number;
            packetSize = size;
        }
    }

    static class Quiet implements CongestionControlEventListener {
        public void bytesInFlightIncreased(long bytes) {}

        public void bytesInFlightDecreased(long bytes) {}
    }

    final NewRenoCongestionController controller = new NewRenoCongestionController(new NullLogger(), new Quiet());
    final ArrayDeque<PacketInfo> inFlight = new ArrayDeque<>();
    Instant now = Instant.now();
    long number;

    /** Sends until the window is full to the byte. */
    void send() {
        while (controller.remainingCwnd() > 0) {
            QuicPacket packet = new Packet(number++, (int) Math.min(DATAGRAM, controller.remainingCwnd()));
            controller.registerInFlight(packet);
            inFlight.add(new PacketInfo(now, packet, lost -> {}));
        }
    }

    /** All that is in flight is acknowledged, a packet at a time; each lets the next be sent. */
    void roundTrip() {
        now = now.plusMillis(600);
        for (int left = inFlight.size(); left > 0; left--) {
            controller.registerAcked(List.of(inFlight.remove()));
            send();
        }
    }

    /** Bytes that the window grows by in a round trip, after a loss that left it at about so many bytes. */
    static double growth(long window) {
        Run run = new Run();
        run.send();
        while (run.controller.getWindowSize() < 2 * window) {
            run.controller.registerAcked(List.of(run.inFlight.remove()));
            run.send();
        }
        run.controller.registerLost(List.of(run.inFlight.remove()));
        while (run.controller.remainingCwnd() < 0) {
            run.controller.registerAcked(List.of(run.inFlight.remove()));
        }
        run.now = Instant.now().plusSeconds(1);
        run.send();
        run.roundTrip();
        long before = run.controller.getWindowSize();
        for (int count = 0; count < ROUND_TRIPS; count++) {
            run.roundTrip();
        }
        return (double) (run.controller.getWindowSize() - before) / ROUND_TRIPS;
    }

    public static void main(String[] arguments) {
        boolean changed = false;
        int[][] cases = {{100_000, 1047}, {500_000, 834}, {800_000, 667}, {1_500_000, 0}};
        for (int[] pair : cases) {
            double told = growth(pair[0]);
            System.out.printf("window of %d bytes: grows by %.0f a round trip, right %d%n", pair[0], told, DATAGRAM);
            changed |= Math.abs(told - pair[1]) > 20;
        }
        System.exit(changed ? 1 : 0);
    }
}
END
java -cp 'lib/*' Run.java
