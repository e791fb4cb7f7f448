#!/bin/sh
# NetPacket 1.7.2 (CPAN; libnetpacket-perl of Debian 12) invents TCP options where a segment has one that it does not
# know (parse_tcp_options in TCP.pm). It does not skip such an option by its length, but takes each byte of it for the
# kind of another option, and reads the values of that from where the unknown one begins. By RFC 9293, 3.1 (MUST-6 and
# MUST-68), an unknown option is ignored, and has a length. So where Multipath TCP (RFC 8684) is in use,
# acknowledgements have a window scale, which only a SYN can have, and data have selective acknowledgements of data
# that nobody sent. A cookie of TCP Fast Open (RFC 7413) can change the segment size of a SYN, and Accurate ECN (RFC
# 9768) give any segment one. The documentation says that it may fail if there are unknown options; it does not fail.
# Known options are right.
#
# Seen, options of the segment and told: timestamps, 100 and 200; with an 8-byte data acknowledgement, window scale 34
# besides; with a mapping of data, SACK blocks 537202978-860103219 and 1146421248-66936; with Accurate ECN, segment size
# 512 and window scale 1. SYN of segment size 1460 and window scale 7 with a cookie: 529 and 68.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libnetpacket-perl=1.7.2-2 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >run.pl <<'END'
use strict;
use warnings;
use NetPacket::TCP;

sub options {
    my ($name, $options) = @_;
    my $words = 5 + length($options) / 8;
    my $segment = pack 'nnNNnnnnH*', 40000, 443, 1, 1, $words << 12 | 0x10, 500, 0, 0, $options;
    my %told = NetPacket::TCP->decode($segment)->parse_tcp_options;
    my @told;
    for my $option (sort keys %told) {
        my $value = $told{$option};
        push @told, "$option " . (ref $value ? join ' ', map { join '-', @$_ } @$value : $value);
    }
    print "$name: ", join(', ', @told), "\n";
}

my $timestamps = '0101080a00000064000000c8';
options('timestamps', $timestamps);
options('and MPTCP acknowledgement', $timestamps . '1e0c20031122334455667788');
options('and MPTCP mapping', $timestamps . '1e142005' . '11223344' . '22334455' . '00000001' . '05780000');
options('and Accurate ECN', $timestamps . 'ac0b00000100000200000301');
my $syn = '020405b4' . '0101080a0000006400000000' . '01030307';
options('SYN', $syn);
options('and Fast Open', $syn . '220a02110308445566770101');
END
perl -I usr/share/perl5 run.pl | tee told
cat >expected <<'END'
timestamps: er 200, ts 100
and MPTCP acknowledgement: er 200, ts 100, ws 34
and MPTCP mapping: er 200, sack_blocks 537202978-860103219 1146421248-66936, ts 100
and Accurate ECN: er 200, mss 512, ts 100, ws 1
SYN: er 0, mss 1460, ts 100, ws 7
and Fast Open: er 0, mss 529, ts 100, ws 68
END
diff expected told
