# The saturated 802.11b cell of benches/peers/README.md in ns-2 2.35. Usage: ns saturation.tcl
# Prints one JSON object (among lines of ns-2's own): throughput in bit/s, packets delivered.

# Only the headers this work needs: ns-2 at its fastest.
remove-all-packet-headers
add-packet-header IP LL Mac ARP RTP

Mac/802_11 set dataRate_ 11.0e6
Mac/802_11 set basicRate_ 1.0e6
Mac/802_11 set RTSThreshold_ 3000

set stations 20
set stop 60.0
# MSDUs (IP packets) of 1500 bytes.
set size 1500
set ns [new Simulator]
set topography [new Topography]
$topography load_flatgrid 100 100
set god [create-god $stations]

# Where dropped packets go: ns-2 would use a trace object, but there is no trace.
Node/MobileNode instproc mobility-trace {type layer} {
    return [[Simulator instance] set nullAgent_]
}

# DumbAgent: every destination is a neighbour.
$ns node-config -adhocRouting DumbAgent \
    -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF

# All at one point: of two frames that overlap, neither is stronger.
for {set i 0} {$i < $stations} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ 0.0
    $node($i) set Y_ 0.0
    $node($i) set Z_ 0.0
}
for {set i 0} {$i < $stations} {incr i} {
    set sender [new Agent/UDP]
    set receiver [new Agent/LossMonitor]
    $sender set packetSize_ $size
    $ns attach-agent $node($i) $sender
    $ns attach-agent $node([expr ($i + 10) % $stations]) $receiver
    $ns connect $sender $receiver
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $size
    $source set interval_ 0.02
    $source attach-agent $sender
    $ns at 0.0 "$source start"
    lappend receivers $receiver
}

proc finish {} {
    global receivers stop size
    set delivered 0
    foreach receiver $receivers {
        incr delivered [$receiver set npkts_]
    }
    puts [format {{"throughput": %.0f, "packets": %d}} \
        [expr $delivered * 8 * $size / $stop] $delivered]
    exit 0
}
$ns at $stop finish
$ns run
