# The wired dumbbell of benches/peers/README.md in ns-2 2.35. Usage: ns dumbbell.tcl
# Prints one JSON object: goodput in bit/s, data segments sent, retransmissions.

# Only the headers TCP needs: ns-2 at its fastest.
remove-all-packet-headers
add-packet-header Flags IP TCP

Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 64
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 1.0
Agent/TCP set rtxcur_init_ 1.0
Agent/TCP set tcpTick_ 0.001
Agent/TCP set overhead_ 0
Agent/TCP set singledup_ 0
Agent/TCP/Newreno set partial_window_deflation_ 1
Agent/TCP/Newreno set newreno_changes1_ 1

set flows 10
set stop 60.0
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 100Mb 10ms DropTail
$ns queue-limit $left $right 300
$ns queue-limit $right $left 300

proc access {router} {
    global ns
    set host [$ns node]
    $ns duplex-link $host $router 1Gb 1ms DropTail
    $ns queue-limit $host $router 1000
    $ns queue-limit $router $host 1000
    return $host
}

for {set i 0} {$i < $flows} {incr i} {
    set sender [new Agent/TCP/Newreno]
    set receiver [new Agent/TCPSink]
    $ns attach-agent [access $left] $sender
    $ns attach-agent [access $right] $receiver
    $ns connect $sender $receiver
    set ftp [new Application/FTP]
    $ftp attach-agent $sender
    $ns at [expr 0.1 * $i] "$ftp start"
    lappend senders $sender
}

proc finish {} {
    global senders stop
    set delivered 0
    set sent 0
    set again 0
    foreach sender $senders {
        incr delivered [$sender set ack_]
        incr sent [$sender set ndatapack_]
        incr again [$sender set nrexmitpack_]
    }
    puts [format {{"goodput": %.0f, "segments": %d, "retransmissions": %d}} \
        [expr $delivered * 8000 / $stop] $sent $again]
    exit 0
}
$ns at $stop finish
$ns run
