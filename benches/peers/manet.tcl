# The mobile ad hoc network of benches/peers/README.md in ns-2 2.35.
#
#   ns manet.tcl MOVEMENT SEED        (a file of setdest commands)
#
# Prints one JSON object (among lines of ns-2's own): goodput of all flows in bit/s, segments
# delivered.

# Only the headers this work needs: ns-2 at its fastest.
remove-all-packet-headers
add-packet-header Flags IP LL Mac ARP TCP AODV

lassign $argv movement seed

Mac/802_11 set dataRate_ 2.0e6
Mac/802_11 set basicRate_ 1.0e6
Mac/802_11 set RTSThreshold_ 0
Agent/TCP set packetSize_ 512
Agent/TCP set window_ 20
Agent/TCP set windowInit_ 2
Agent/TCP set minrto_ 1.0
Agent/TCP set rtxcur_init_ 3.0

set stations 50
set flows 25
set stop 600.0
ns-random $seed
set ns_ [new Simulator]
set topography [new Topography]
$topography load_flatgrid 1200 1200
create-god $stations

# Where dropped packets go: a trace object is ns-2's default, and there is no trace.
Node/MobileNode instproc mobility-trace {type layer} {
    return [[Simulator instance] set nullAgent_]
}

$ns_ node-config -adhocRouting AODV \
    -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topography \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF

for {set i 0} {$i < $stations} {incr i} {
    set node_($i) [$ns_ node]
    $node_($i) random-motion 0
}
source $movement

for {set i 0} {$i < $flows} {incr i} {
    set sender($i) [new Agent/TCP/Newreno]
    set receiver [new Agent/TCPSink]
    $ns_ attach-agent $node_($i) $sender($i)
    $ns_ attach-agent $node_([expr $i + $flows]) $receiver
    $ns_ connect $sender($i) $receiver
    set source [new Application/FTP]
    $source attach-agent $sender($i)
    $ns_ at 0.0 "$source start"
}

proc finish {} {
    global sender flows stop
    # Counted at the senders: the segments acknowledged, from number 0.
    set delivered 0
    for {set i 0} {$i < $flows} {incr i} {
        incr delivered [expr [$sender($i) set ack_] + 1]
    }
    puts [format {{"goodput": %.0f, "segments": %d}} [expr $delivered * 512 * 8 / $stop] $delivered]
    exit 0
}
$ns_ at $stop finish
$ns_ run
