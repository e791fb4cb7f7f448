#!/bin/sh
# Statistics::LineFit 0.07 (libstatistics-linefit-perl of Debian 12) fits lines, as through the offsets of a clock for
# its drift, and tells how sure slope and intercept are (varianceOfEstimates). It names Numerical Recipes in C, equation
# 15.2.9, for that, which has the known errors of the measurements. The module puts in how far each point happens to be
# from the line (LineFit.pm: $variance = ($predictedYs[$i] - y[$i]) ** 2), so that a point that the line goes through by
# chance counts as a measurement without an error, and one exactly on it is left out. So the variance is many times too
# small, at random, and a drift looks certain where there is none. Nothing is said. By the same book and the textbook
# that it names too, it is sigma squared over the sum of (x - mean) squared, which its own sigma and tStatistics use.
#
# Seen, 500 fits to 20 points with errors of a variance of 1, whose slopes have one of 1 / 665, 0.0015: by sigma 0.0015
# (the median), by varianceOfEstimates 0.0001. 2.1 of its standard errors either way should contain the slope in 95 % of
# the fits (Student's t for 18), and do in 42.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libstatistics-linefit-perl=0.07-3 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >run.pl <<'END'
use strict;
use warnings;
use Statistics::LineFit;

# Uniform numbers of a generator of our own, so that each Perl has the same.
my $state = 1;
sub uniform { $state = ($state * 1_103_515_245 + 12_345) % 2**31; return ($state + 1) / (2**31 + 1) }
sub normal { return sqrt(-2 * log(uniform())) * cos(8 * atan2(1, 1) * uniform()) }
sub median { return (sort { $a <=> $b } @_)[@_ / 2] }

my ($count, $slope, $squares) = (500, 2, 665);  # squares: the sum of (x - mean) squared of 1 to 20
my (@by_sigma, @told, $true, $contained);
for (1 .. $count) {
    my @x = 1 .. 20;
    my @y = map { $slope * $_ + 1 + normal() } @x;
    my $fit = Statistics::LineFit->new;
    $fit->setData(\@x, \@y);
    my $off = ($fit->coefficients)[1] - $slope;
    my $variance = ($fit->varianceOfEstimates)[1];
    $true += $off**2 / $count;
    push @by_sigma, $fit->sigma**2 / $squares;
    push @told, $variance;
    $contained += abs($off) < 2.1 * sqrt($variance);
}
printf "variance of the slopes: %.4f\n", $true;
printf "by sigma: %.4f\n", median(@by_sigma);
printf "told: %.4f\n", median(@told);
printf "contained: %.0f %%\n", 100 * $contained / $count;
END
perl -Iusr/share/perl5 run.pl | tee told
cat >expected <<'END'
variance of the slopes: 0.0016
by sigma: 0.0015
told: 0.0001
contained: 42 %
END
diff expected told
