# A chain of stations in ns-2 2.35: TCP or constant bit rate from one end to the other.
#
#   ns chain.tcl HOPS SEED tcp WINDOW every|delayed
#   ns chain.tcl HOPS SEED cbr RATE            (offered, bit/s of packets of 1500 bytes)
#
# Prints one JSON object (among lines of ns-2's own): goodput in bit/s.

# Only the headers this work needs: ns-2 at its fastest.
remove-all-packet-headers
add-packet-header Flags IP LL Mac ARP TCP AODV RTP

lassign $argv hops seed traffic load acks
set stations [expr $hops + 1]
set stop 200.0

Mac/802_11 set dataRate_ 2.0e6
Mac/802_11 set basicRate_ 1.0e6
Mac/802_11 set RTSThreshold_ 0
Agent/TCP set packetSize_ 1000

ns-random $seed
set ns [new Simulator]
set topography [new Topography]
$topography load_flatgrid [expr 200 * $stations] 100
create-god $stations

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

if {$traffic == "tcp"} {
    set sender [new Agent/TCP/Newreno]
    $sender set window_ $load
    set receiver [expr {$acks == "delayed" ? [new Agent/TCPSink/DelAck] : [new Agent/TCPSink]}]
    set source [new Application/FTP]
} else {
    set sender [new Agent/UDP]
    $sender set packetSize_ 1500
    set receiver [new Agent/LossMonitor]
    set source [new Application/Traffic/CBR]
    $source set packetSize_ 1500
    $source set rate_ $load
}
$ns attach-agent $node(0) $sender
$ns attach-agent $node($hops) $receiver
$ns connect $sender $receiver
$source attach-agent $sender
$ns at 0.0 "$source start"

proc finish {} {
    global receiver sender stop traffic
    if {$traffic == "tcp"} {
        # Counted at the sender: the segments acknowledged, from number 0.
        set bits [expr ([$sender set ack_] + 1) * 8000]
        puts [format {{"goodput": %.0f, "timeouts": %d}} [expr $bits / $stop] [$sender set ncwndcuts_]]
    } else {
        puts [format {{"goodput": %.0f}} [expr [$receiver set npkts_] * 12000 / $stop]]
    }
    exit 0
}
$ns at $stop finish
$ns run
