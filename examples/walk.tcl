# A walk in the format of ns-2's setdest: out of the range of an access point at 0, 0, and back.
$node_(0) set X_ 50.0
$node_(0) set Y_ 0.0
$node_(0) set Z_ 0.0
$ns_ at 10.0 "$node_(0) setdest 290.0 0.0 12.0"
$ns_ at 35.0 "$node_(0) setdest 50.0 0.0 12.0"
