#!/bin/sh
# On Linux the npm packages node-wifi 2.0.16 (signal_level, "in dB") and systeminformation 5.33.26
# (signalLevel) convert the percentage of nmcli to dBm as half of it, less 100. That is not how
# NetworkManager converts dBm to a percentage (1.59.2-dev, by its source): for the network in use dBm + 120
# between -90 and -20 (nl80211_xbm_to_percent), for the others 0 to 100 between -100 and -40
# (nm_wifi_utils_level_to_quality). So levels are up to 30 dB too low, and 10 dB of change in use look
# like 5. At -40 dBm the network in use seems 10 dB weaker than another of the same level, at -90 dBm it
# seems 6.5 dB stronger. Nothing is said. What helps: iw, which prints the kernel's dBm.
#
# Seen at -30, -40, -50, -70 and -90 dBm: in use -55, -60, -65, -75, -85; others -50, -50, -58, -75, -91.5.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-fund --no-audit node-wifi@2.0.16 systeminformation@5.33.26 >/dev/null
mkdir bin
cat >bin/nmcli <<'END'
#!/bin/sh
# Stands in for nmcli: prints the networks of $NETWORKS in the mode asked for.
case $* in
*"device wifi list"*) ;;
*) exit 0 ;;
esac
echo "$NETWORKS" | while IFS=' ' read -r active name percent; do
    case $* in
    *multiline*)
        printf '%s\n' "ACTIVE:$active" "SSID:$name" "BSSID:02:00:00:00:00:01" "MODE:Infra" "CHAN:36" \
            "FREQ:5180 MHz" "SIGNAL:$percent" "SECURITY:WPA2" "WPA-FLAGS:(none)" "RSN-FLAGS:pair_ccmp"
        ;;
    *)
        rest="Infra:36:5180 MHz:$percent:WPA2:(none):pair_ccmp"
        printf '%s\n' "$active:$name:02\\:00\\:00\\:00\\:00\\:01:$rest"
        ;;
    esac
done
END
chmod +x bin/nmcli
cat >run.js <<'END'
const assert = require("assert");
const wifi = require("node-wifi");
const system = require("systeminformation");

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const inUse = (dbm) => 120 + clamp(dbm, -90, -20);
const other = (dbm) => 100 - Math.trunc((100 * -(clamp(dbm, -100, -40) + 40)) / 60);
const levels = [-30, -40, -50, -70, -90];
const networks = [
  ...levels.map((dbm) => ["yes", `in use at ${dbm}`, inUse(dbm)]),
  ...levels.map((dbm) => ["no", `other at ${dbm}`, other(dbm)]),
];

async function level([active, name, percent]) {
  process.env.NETWORKS = `${active} ${name.replaceAll(" ", "_")} ${percent}`;
  const [byWifi] = await wifi.scan();
  const [bySystem] = await system.wifiNetworks();
  const told = `node-wifi ${byWifi.signal_level}, systeminformation ${bySystem.signalLevel}`;
  console.log(`${name} dBm: nmcli ${percent} %, ${told}`);
  assert.strictEqual(byWifi.signal_level, bySystem.signalLevel);
  return byWifi.signal_level;
}

(async () => {
  wifi.init({ iface: null });
  const told = [];
  for (const network of networks) told.push(await level(network));
  assert.deepStrictEqual(told, [-55, -60, -65, -75, -85, -50, -50, -58, -75, -91.5]);
})().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
END
PATH="$dir/bin:$PATH" node run.js
