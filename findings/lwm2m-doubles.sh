#!/bin/sh
# lwm2m-codec 0.1.1 (npm), a codec of LwM2M's binary format (TLV), reads four bytes of every float, whatever its length
# (decodeTlvResrc in lib/decode.js). LwM2M 1.0 (OMA), appendix C, lets a float have 32 or 64 bits; the length in the TLV
# tells which. Leshan 1.5.0 (Maven Central), client and server of LwM2M for Java, sends a double with 64. The upper half
# of it, read as a float, is another number: a little less than twice the eighth root of the right one. It has the right
# sign, grows with the right one and stays in a range that looks possible. So readings of a sensor, and the latitude of
# a moving node, are wrong, and nothing is said. Floats of 32 bits are right.
#
# Seen, doubles sent by Leshan: 25.5 is read as 2.898, -12.25 as -2.633, 48.8584 as 3.132, 1000 as 4.477.
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
      <groupId>org.eclipse.leshan</groupId><artifactId>leshan-core</artifactId><version>1.5.0</version>
    </dependency>
  </dependencies>
</project>
END
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib >log 2>&1 || { cat log >&2; exit 2; }
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund lwm2m-codec@0.1.1
cat >Run.java <<'END'
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.eclipse.leshan.core.tlv.Tlv;
import org.eclipse.leshan.core.tlv.Tlv.TlvType;
import org.eclipse.leshan.core.tlv.TlvEncoder;

class Run {
    static final int SENSOR_VALUE = 5700;

    static void send(double value, byte[] content) {
        ByteBuffer packet =
                TlvEncoder.encode(new Tlv[] {new Tlv(TlvType.RESOURCE_VALUE, null, content, SENSOR_VALUE)});
        byte[] bytes = new byte[packet.remaining()];
        packet.get(bytes);
        System.out.println(value + " " + content.length + " " + HexFormat.of().formatHex(bytes));
    }

    public static void main(String[] arguments) {
        for (double value : new double[] {25.5, -12.25, 48.8584, 1000}) {
            send(value, TlvEncoder.encodeFloat(value));
            send(value, TlvEncoder.encodeFloat((float) value));
        }
    }
}
END
cat >run.js <<'END'
const codec = require('lwm2m-codec')
for (const line of require('fs').readFileSync(0, 'utf8').trim().split('\n')) {
  const [value, length, hex] = line.split(' ')
  const read = codec.decode('tlv', '/3303/0/5700', Buffer.from(hex, 'hex'))
  console.log(`${Number(value)} in ${length} bytes: ${read.toFixed(3)}`)
}
END
java -cp 'lib/*' Run.java 2>log | node run.js | tee told
cat >expected <<'END'
25.5 in 8 bytes: 2.898
25.5 in 4 bytes: 25.500
-12.25 in 8 bytes: -2.633
-12.25 in 4 bytes: -12.250
48.8584 in 8 bytes: 3.132
48.8584 in 4 bytes: 48.858
1000 in 8 bytes: 4.477
1000 in 4 bytes: 1000.000
END
diff expected told
