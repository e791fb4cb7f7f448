#!/bin/sh
# Tcllib 1.21 (Debian 12) has statistics for Tcl, of which three are off, and nothing is said. binary-segmentation
# (math::changepoint) cuts a series where its mean changes, then both parts again, and tells the index of the last value
# before each change. In the part behind a cut it counts from that value on, not from the one after it (BinSegRecursive
# in changepoint.tcl: $first+$idxmin), so a cut behind a cut behind another is one too low. interval-mean-stdev takes
# what is outside the confidence to be split on two sides twice (conf2, and the F distribution of the square): 0.95
# gives the interval of 0.975. kernel-density divides weights by the scale that it should multiply with, which has the
# number of values where it should not (stat_kernel.tcl), so that the area below the density is the square of the sum of
# the weights times that number. Without weights, each of which is 1 "by default", it is 1.
#
# Seen, changes after 50, 100 and 150 values: 49 99 148, right is 149. The mean of 1 to 10 with 0.95: 2.93 to 8.07;
# right is 5.5 -+ 2.262 * 3.028 / sqrt(10), 3.33 to 7.67. Five values with weights of 1: an area of 125, without: 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet tcllib=1.21+dfsg-1 tcl8.6=8.6.13+dfsg-2 libtcl8.6=8.6.13+dfsg-2 >log 2>&1 || {
	cat log >&2
	exit 2
}
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.tcl <<'END'
package require math::statistics
package require math::changepoint

set series {}
foreach mean {10 20 30 40} {
    for {set i 0} {$i < 50} {incr i} {
        lappend series [expr {$mean + 0.1 * ($i % 5 - 2)}]
    }
}
puts "changes: [math::changepoint::binary-segmentation $series]"
lassign [math::statistics::interval-mean-stdev {1 2 3 4 5 6 7 8 9 10} 0.95] low high
puts [format "mean: %.2f to %.2f" $low $high]
foreach options {{} {-weights {1 1 1 1 1}}} {
    set densities [lindex [math::statistics::kernel-density {1 2 3 4 5} -interval {-5 11} -number 160 {*}$options] 1]
    puts [format "area: %.2f" [expr {0.1 * [::tcl::mathop::+ {*}$densities]}]]
}
END
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu" TCL_LIBRARY="$dir/usr/share/tcltk/tcl8.6"
TCLLIBPATH="$dir/usr/share/tcltk/tcllib1.21" usr/bin/tclsh8.6 run.tcl | tee told
cat >expected <<'END'
changes: 49 99 148
mean: 2.93 to 8.07
area: 1.00
area: 125.00
END
diff expected told
