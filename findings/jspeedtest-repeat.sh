#!/bin/sh
# JSpeedTest 1.32.1 (Maven Central: fr.bmartel), a speed test for Java and Android, can download a file again and
# again for as long as it is told (startDownloadRepeat). By its documentation the rate is computed since the
# beginning, from all packets (ComputationMethod.MEDIAN_ALL_TIME, the default). But it is a mean of rates
# (getRepeatReport in RepeatWrapper.java), and after each download not the rate of that one goes into the mean, but
# the mean itself. So where a radio is slow for most of the time and fast for a moment, the moment counts again and
# again. And at the end the rate of the download that is cut off is added as if it were a whole one, while the number
# that the sum is divided by has the share of all bytes that came, not of that download. So after one or two downloads
# a steady path seems up to a third faster than it is. Nothing is said.
#
# Seen, steady 8.0 Mbit/s for 1.3 s, files of 1 s: 9.7 Mbit/s. Files of 400 kB at 1.6 and 16 Mbit/s in turn for 6 s:
# 4.5 to 4.8 Mbit/s, right is 2.5.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >pom.xml <<'END'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>fr.bmartel</groupId><artifactId>jspeedtest</artifactId><version>1.32.1</version></dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib >log 2>&1 || { cat log >&2; exit 2; }
cat >Run.java <<'END'
import fr.bmartel.speedtest.SpeedTestReport;
import fr.bmartel.speedtest.SpeedTestSocket;
import fr.bmartel.speedtest.inter.IRepeatListener;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;

class Run {
    /** Serves files of a size in bytes at these rates in bytes per millisecond, in turn. */
    static void serve(ServerSocket server, int size, int[] rates, AtomicLong served) {
        try {
            for (int number = 0;; number++) {
                Socket socket = server.accept();
                socket.getInputStream().read(new byte[4096]);
                OutputStream out = socket.getOutputStream();
                out.write(("HTTP/1.1 200 OK\r\nContent-Length: " + size + "\r\n\r\n").getBytes());
                send(out, size, rates[number % rates.length], served);
            }
        } catch (IOException | InterruptedException over) {
            return;
        }
    }

    static void send(OutputStream out, int size, int rate, AtomicLong served) throws InterruptedException {
        long start = System.nanoTime();
        try {
            for (int sent = 0; sent < size;) {
                int due = (int) Math.min(size, (System.nanoTime() - start) * rate / 1_000_000);
                out.write(new byte[due - sent]);
                served.addAndGet(due - sent);
                sent = due;
                Thread.sleep(2);
            }
        } catch (IOException cutOff) {
            return;
        }
    }

    /** Whether the rate that is told for a window in ms is about the expected one, in Mbit/s. */
    static boolean measure(int window, double expected, int size, int... rates) throws Exception {
        ServerSocket server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        AtomicLong served = new AtomicLong();
        Thread thread = new Thread(() -> serve(server, size, rates, served));
        thread.setDaemon(true);
        thread.start();
        CompletableFuture<SpeedTestReport> last = new CompletableFuture<>();
        String address = "http://127.0.0.1:" + server.getLocalPort() + "/";
        new SpeedTestSocket().startDownloadRepeat(address, window, window, new IRepeatListener() {
            public void onReport(SpeedTestReport report) {}

            public void onCompletion(SpeedTestReport report) {
                last.complete(report);
            }
        });
        double told = last.get().getTransferRateBit().doubleValue() / 1e6;
        System.out.printf("%.1f Mbit/s, right %.1f%n", told, served.get() * 8 / 1e3 / window);
        return Math.abs(told / expected - 1) < 0.12;
    }

    public static void main(String[] arguments) throws Exception {
        boolean steady = measure(1300, 9.6, 1_000_000, 1000);
        boolean upAndDown = measure(6000, 4.6, 400_000, 200, 2000);
        System.exit(steady && upAndDown ? 0 : 1);
    }
}
END
java -cp 'lib/*' Run.java
