#!/bin/sh
# Math::NumberCruncher 5.00 (libmath-numbercruncher-perl of Debian 12) has the sign test, by which one tells whether one
# of two congestion controls was faster more often than by chance. SignSignificance is to add up the probabilities of as
# many hits or more. It goes through these numbers, but takes that of the first each time (NumberCruncher.pm: Binomial(
# $trials, $hits, $probability) in a loop over $hits .. $trials). So what it tells is far too high, above 1 too, and
# what is significant does not look it. Binomial is inverted where each attempt succeeds ($k != $n if $p == 1). Nothing
# is said. By the definition it is the sum of C(n, k) p^k (1 - p)^(n - k) over k from the hits on.
#
# Seen, 12 of 15 faster: 0.056, right is 0.018. 10 of 20: 1.938, right is 0.588. All of 10 at a probability of 1: 0, and
# 3 of 10: 1; right are 1 and 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libmath-numbercruncher-perl=5.00-14 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >run.pl <<'END'
use strict;
use warnings;
use Math::NumberCruncher;

for ([15, 12], [20, 10]) {
    my ($trials, $hits) = @$_;
    my $told = Math::NumberCruncher::SignSignificance($trials, $hits, 0.5);
    my $right = 0;
    $right += Math::NumberCruncher::Binomial($trials, $_, 0.5) for $hits .. $trials;
    printf "%d of %d: told %.3f, right %.3f\n", $hits, $trials, $told, $right;
}
printf "%d of 10 at 1: %d\n", $_, Math::NumberCruncher::Binomial(10, $_, 1) || 0 for 10, 3;
END
perl -Iusr/share/perl5 run.pl | tee told
cat >expected <<'END'
12 of 15: told 0.056, right 0.018
10 of 20: told 1.938, right 0.588
10 of 10 at 1: 0
3 of 10 at 1: 1
END
diff expected told
