#!/bin/sh
# simulation::random of Tcllib 1.21 (Debian 12), random numbers and places for simulations in Tcl, is wrong in three of
# its generators (random.tcl). prng_Sphere, "uniformly spread over the surface of a sphere", and prng_Ball take the
# angle from the pole, acos(2u - 1), for a latitude: z is its sine, which is never below zero. So all points, as of
# satellites around the Earth or of sensors in water, are in the northern half, and most of a sphere's are near its
# pole: half of them above 60 degrees, where 6.7 % of the surface are. prng_chiSquared has sqrt(-log(u)) where the
# method of Box and Muller has sqrt(-2 log(u)), so its squares are half of what they should be before it moves and
# scales them to "the mean is 0 and the standard deviation is 1". Nothing is said. prng_Normal and prng_Disk are right.
#
# Seen, 20000 each: points below the equator 0 % on the sphere and in the ball, right is 50; above 60 degrees 50 %,
# right is 6.7. Four degrees of freedom: mean -0.71 and standard deviation 0.50, right are 0 and 1.
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
package require simulation::random

set count 20000
expr {srand(1)}
foreach shape {Sphere Ball} {
    set point [simulation::random::prng_$shape 1.0]
    set below 0
    set high 0
    for {set i 0} {$i < $count} {incr i} {
        lassign [$point] x y z
        incr below [expr {$z < 0}]
        incr high [expr {$z > 0.8660254 * sqrt($x * $x + $y * $y + $z * $z)}]
    }
    puts [format "%s: %.0f %% below the equator, %.0f %% above 60 degrees" $shape \
        [expr {100.0 * $below / $count}] [expr {100.0 * $high / $count}]]
}
foreach {name arguments} {chiSquared 4 Normal {0 1}} {
    set number [simulation::random::prng_$name {*}$arguments]
    set sum 0.0
    set squares 0.0
    for {set i 0} {$i < $count} {incr i} {
        set value [$number]
        set sum [expr {$sum + $value}]
        set squares [expr {$squares + $value * $value}]
    }
    set mean [expr {$sum / $count}]
    puts [format "%s: mean %.1f, standard deviation %.1f" $name \
        [expr {round(10 * $mean) / 10.0}] [expr {sqrt($squares / $count - $mean * $mean)}]]
}
END
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu" TCL_LIBRARY="$dir/usr/share/tcltk/tcl8.6"
TCLLIBPATH="$dir/usr/share/tcltk/tcllib1.21" usr/bin/tclsh8.6 run.tcl | tee told
cat >expected <<'END'
Sphere: 0 % below the equator, 50 % above 60 degrees
Ball: 0 % below the equator, 50 % above 60 degrees
chiSquared: mean -0.7, standard deviation 0.5
Normal: mean 0.0, standard deviation 1.0
END
diff expected told
