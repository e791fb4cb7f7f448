#!/bin/sh
# Net::NTP 1.5 (libnet-ntp-perl of Debian 12) puts four fields of NTP together wrongly (NTP.pm). Of a root delay it
# keeps only the fraction and of a root dispersion only the whole seconds (decode), so a server at the end of satellite
# links seems as good as its clock. Into its request it writes a fraction made of the whole time of day, not of the
# fraction (encode): it is 0.74 whatever the time is, and comes back as the "Originate Timestamp". And the "Destination
# Timestamp", when the reply came, is when the request left (decode takes one time, get_ntp_response gives it two). Who
# computes delay and offset from the four times gets a negative delay. Nothing is said; the fields "Delay" and "Offset"
# take other times and are right. ntp-packet-parser 0.5.0 (npm) reads the precision, -20 or so, as a number without sign
# (packetStruct): by its README one is to take 2 to that power, which is 10^71 s. By RFC 5905, 6 and 7.3, both root
# values are seconds in 16 bits and their fraction in 16, the precision is signed, and T1 and T4 are the client's.
#
# Seen, a right clock, 250 ms each way, a server with root delay 1.25, dispersion 0.75 and precision -20: Net::NTP 0.25
# and 0, from the four times delay -0.493 s, right 0.5; ntp-packet-parser 1.25, 0.75 and 236, Net::NTP -20, right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet libnet-ntp-perl=1.5-3 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund ntp-packet-parser@0.5.0
cat >run.pl <<'END'
use strict;
use warnings;
use Net::NTP;

my ($second, $epoch) = (1_700_000_000, 2_208_988_800);

sub sent {
    my ($whole, $fraction) = unpack 'x40 N N', Net::NTP::Packet->new_client_packet($_[0])->encode;
    return $whole, $fraction;
}
for my $fraction (0, 0.25, 0.75) {
    printf "sent at .%02d: .%02d\n", $fraction * 100, (sent($second + $fraction))[1] / 2**32 * 100;
}

# Sent at .25, received and answered at .5, back at .75.
my ($left, $back, $half) = ($second + 0.25, $second + 0.75, 2**31);
my $server = $second + $epoch;
my @root = (1.25 * 2**16, 0.75 * 2**16, "\x0a\0\0\1");
my $reply = pack 'C3 c N N a4 N8', 0x24, 2, 6, -20, @root, $server - 60, 0, sent($left), ($server, $half) x 2;
open my $file, '>', 'reply' or die;
print $file $reply;
close $file;
my $packet = Net::NTP::Packet->decode($reply, $left, $back);
printf "Net::NTP: root delay %.2f, dispersion %.2f, precision %d\n", @$packet{qw(rootdelay rootdisp precision)};
my ($origin, $receive, $transmit, $destination) = @$packet{qw(org rec xmt dst)};
printf "delay from the four times %.3f, told %.3f\n", $destination - $origin - ($transmit - $receive),
    Net::NTP->delay($packet, $left, $back);
END
cat >run.js <<'END'
const { NtpPacketParser } = require('ntp-packet-parser')
const packet = NtpPacketParser.parse(require('fs').readFileSync('reply'))
const seconds = date => ((date - new Date('Jan 01 1900 GMT')) / 1000).toFixed(2) // As its README says.
const [delay, dispersion] = [seconds(packet.rootDelay), seconds(packet.rootDispersion)]
console.log(`ntp-packet-parser: root delay ${delay}, dispersion ${dispersion}, precision ${packet.precision}`)
END
{ perl -Iusr/share/perl5 run.pl && node run.js; } | tee told
cat >expected <<'END'
sent at .00: .74
sent at .25: .74
sent at .75: .74
Net::NTP: root delay 0.25, dispersion 0.00, precision -20
delay from the four times -0.493, told 0.500
ntp-packet-parser: root delay 1.25, dispersion 0.75, precision 236
END
diff expected told
