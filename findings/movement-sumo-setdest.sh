#!/bin/sh
# traceExporter.py of SUMO 1.28.0 (--ns2mobility-output) writes for each sample of a vehicle "at t, go
# to where you are at t, as fast as you are at t". ns-2 2.35 and ns-3 3.44 set out at t, so a node is
# where its vehicle was one sample ago; and a vehicle that has stopped has speed 0, so its node never
# gets there: it stands where the vehicle was when it still moved, for as long as the stop lasts.
# Nothing is said. The file's verb wants the next sample's place and the speed to be there in time.
#
# Seen, metres along the road, a car at 15 m/s that stops at 250 m (SUMO, then ns-3): with samples
# every second 153.5 and 138.66 under way, 250.0 and 249.99 at the stop; with samples every 5 s 153.5
# and 79.3, 250.0 and 227.7.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet eclipse-sumo==1.28.0 sumo-data==1.28.0 ns3==3.44.post0 cppyy==3.5.0
SUMO_HOME=$(venv/bin/python -c 'import sumo; print(sumo.SUMO_HOME)')
export SUMO_HOME
cat >road.nod.xml <<'END'
<nodes><node id="a" x="0" y="10"/><node id="b" x="600" y="10"/></nodes>
END
cat >road.edg.xml <<'END'
<edges><edge id="ab" from="a" to="b" numLanes="1" speed="14"/></edges>
END
cat >car.rou.xml <<'END'
<routes>
  <vType id="car" sigma="0" speedDev="0" speedFactor="1.06"/>
  <vehicle id="0" type="car" depart="0">
    <route edges="ab"/><stop edge="ab" endPos="250" duration="20"/>
  </vehicle>
</routes>
END
"$SUMO_HOME/bin/netconvert" -n road.nod.xml -e road.edg.xml -o road.net.xml >log 2>&1
for period in 1 5; do
    "$SUMO_HOME/bin/sumo" -n road.net.xml -r car.rou.xml --end 40 --no-step-log \
        --fcd-output fcd$period.xml --device.fcd.period $period >>log 2>&1
    venv/bin/python "$SUMO_HOME/tools/traceExporter.py" -i fcd$period.xml \
        --ns2mobility-output nodes$period.tcl >>log 2>&1
done
cat >run.py <<'END'
import sys
import xml.etree.ElementTree as ElementTree

from ns import ns

period = sys.argv[1]
steps = ElementTree.parse(f"fcd{period}.xml").getroot()
sumo = {float(step.get("time")): float(step[0].get("x")) for step in steps if len(step)}
nodes = ns.NodeContainer()
nodes.Create(1)
ns.Ns2MobilityHelper(f"nodes{period}.tcl").Install()
model = nodes.Get(0).__deref__().GetObject[ns.MobilityModel]()
for at, told in ((10, "under way"), (25, "at the stop")):
    ns.Simulator.Stop(ns.Seconds(at) - ns.Simulator.Now())
    ns.Simulator.Run()
    print(f"samples every {period} s, {told}: {sumo[at]} {model.__deref__().GetPosition().x:.2f}")
END
for period in 1 5; do venv/bin/python run.py $period 2>>log; done | tee seen
cat >expected <<'END'
samples every 1 s, under way: 153.5 138.66
samples every 1 s, at the stop: 250.0 249.99
samples every 5 s, under way: 153.5 79.30
samples every 5 s, at the stop: 250.0 227.70
END
cmp seen expected
