#!/bin/sh
# Two retransmission timers of Californium 3.13.0, CoAP for Java, are not what they are named for. Rto, which CoCoA
# uses, has the gains of RFC 6298, 2.3, exchanged: 1/4 for the smoothed round trip and 1/8 for its variation, where its
# documentation names that RFC. So the variation of a spike counts half, and a second one as long is a timeout. And
# PeakhopperRto divides whole numbers: the relative change of the round trip, by which it raises the timeout, is 0
# unless the round trip falls to half or less. On a path that slows down, for which this timer was made (Ekstrom and
# Ludwig, INFOCOM 2004), the timeout stays at its floor, 100 ms above the longest round trip. Nothing is said; requests
# that are only slow are sent again. aiortc 1.16.0 has the gains of the RFC.
#
# Seen, round trips of 200 ms, then one of 2000 ms: timeout 1566 ms; right is 2225. Of 400 ms, then 700 and 1000 ms:
# 800 and 1100 ms; with the division in floating point 1300 and 1821.
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
      <groupId>org.eclipse.californium</groupId><artifactId>californium-core</artifactId><version>3.13.0</version>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib >log 2>&1 || { cat log >&2; exit 2; }
cat >Run.java <<'END'
import java.util.ArrayList;
import java.util.List;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.stack.RemoteEndpoint;
import org.eclipse.californium.core.network.stack.RemoteEndpoint.RtoType;
import org.eclipse.californium.core.network.stack.congestioncontrol.PeakhopperRto;
import org.eclipse.californium.core.network.stack.congestioncontrol.Rto;
import org.eclipse.californium.elements.config.Configuration;

class Run {
    static final int SAMPLES = 100;

    static class Peakhopper extends PeakhopperRto {
        Peakhopper(Configuration configuration) {
            super("finding", configuration);
        }

        RemoteEndpoint endpoint() {
            return createRemoteEndpoint("peer");
        }
    }

    public static void main(String[] arguments) {
        Rto rto = new Rto(4, 2000);
        for (int sample = 0; sample < SAMPLES; sample++) {
            rto.apply(200);
        }
        List<Long> told = new ArrayList<>();
        told.add(rto.apply(2000));

        CoapConfig.register();
        RemoteEndpoint endpoint = new Peakhopper(Configuration.createStandardWithoutFile()).endpoint();
        for (int sample = 0; sample < SAMPLES; sample++) {
            endpoint.processRttMeasurement(RtoType.STRONG, 400);
        }
        for (long time : new long[] {700, 1000}) {
            endpoint.processRttMeasurement(RtoType.STRONG, time);
            told.add(endpoint.getRTO());
        }
        System.out.println("Rto: " + told.get(0) + " ms; PeakhopperRto: " + told.subList(1, 3) + " ms");
        System.exit(told.equals(List.of(1566L, 800L, 1100L)) ? 0 : 1);
    }
}
END
javac -cp 'lib/*' -d . Run.java
java -cp 'lib/*:.' Run
