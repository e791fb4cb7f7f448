#!/bin/sh
# Algorithm::Backoff 0.009 (libalgorithm-backoff-perl of Debian 12) can count the time since the last call
# (consider_actual_delay), so that who has waited need not wait again. It takes that time off the delay and keeps what
# is below zero for later calls (_consider_actual_delay in Backoff.pm; only what it returns is cut off at 0). Successes
# do not clear it. So after 10 minutes without a request, as between two readings of a sensor, an outage begins with
# retries without any delay, until the delays left out add up to 10 minutes. That is the load that back-off is to spare
# a link. Nothing is said. By its documentation it is the delay at hand that the wait counts for: "if you waited 4
# seconds or more, failure() will return 0". Without the option all is right.
#
# Seen, delays of 1 s doubled up to 60 s, first failure 0, 60 and 600 s after a success: 0, 5 and 9 retries at once.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libalgorithm-backoff-perl=0.009-3 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >run.pl <<'END'
use strict;
use warnings;
use Algorithm::Backoff::Exponential;

for my $counted (0, 1) {
    for my $quiet (0, 60, 600) {
        my $backoff = Algorithm::Backoff::Exponential->new(
            initial_delay => 1, max_delay => 60, consider_actual_delay => $counted);
        my $now = 1000;
        $backoff->success($now);
        $now += $quiet;
        my @delays;
        for (1 .. 12) {
            push @delays, $backoff->failure($now);
            $now += $delays[-1];
        }
        print $counted ? "with" : "without", " the option, $quiet s after a success: @delays\n";
    }
}
END
perl -Iusr/share/perl5 run.pl | tee told
cat >expected <<'END'
without the option, 0 s after a success: 1 2 4 8 16 32 60 60 60 60 60 60
without the option, 60 s after a success: 1 2 4 8 16 32 60 60 60 60 60 60
without the option, 600 s after a success: 1 2 4 8 16 32 60 60 60 60 60 60
with the option, 0 s after a success: 1 2 4 8 16 32 60 60 60 60 60 60
with the option, 60 s after a success: 0 0 0 0 0 3 60 60 60 60 60 60
with the option, 600 s after a success: 0 0 0 0 0 0 0 0 0 60 60 60
END
diff expected told
