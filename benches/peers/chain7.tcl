# The chain of benches/peers/README.md in ns-2 2.35. Usage: ns chain7.tcl
# Prints one JSON object (among lines of ns-2's own): goodput in bit/s, segments delivered.

# Only the headers this work needs: ns-2 at its fastest.
remove-all-packet-headers
add-packet-header Flags IP LL Mac ARP TCP AODV

Mac/802_11 set dataRate_ 2.0e6
Mac/802_11 set basicRate_ 1.0e6
Mac/802_11 set RTSThreshold_ 0
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 2
Agent/TCP set windowInit_ 2
Agent/TCP set minrto_ 1.0
Agent/TCP set rtxcur_init_ 1.0

set stations 8
set stop 300.0
set ns [new Simulator]
set topography [new Topography]
$topography load_flatgrid 1500 100
set god [create-god $stations]

# Where dropped packets go: a trace object is ns-2's default, and there is no trace.
Node/MobileNode instproc mobility-trace {type layer} {
    return [[Simulator instance] set nullAgent_]
}

$ns node-config -adhocRouting AODV \
    -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF

for {set i 0} {$i < $stations} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr 200.0 * $i]
    $node($i) set Y_ 0.0
    $node($i) set Z_ 0.0
}
set sender [new Agent/TCP/Newreno]
set receiver [new Agent/TCPSink]
$ns attach-agent $node(0) $sender
$ns attach-agent $node(7) $receiver
$ns connect $sender $receiver
set source [new Application/FTP]
$source attach-agent $sender
$ns at 0.0 "$source start"

proc finish {} {
    global receiver sender stop
    # Counted at the sender: the segments acknowledged, from number 0.
    set delivered [expr [$sender set ack_] + 1]
    puts [format {{"goodput": %.0f, "segments": %d}} \
        [expr $delivered * 8000 / $stop] $delivered]
    exit 0
}
$ns at $stop finish
$ns run
