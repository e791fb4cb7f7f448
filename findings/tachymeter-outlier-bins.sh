#!/bin/sh
# tachymeter 2.0.0 (golang-github-jamiealquiza-tachymeter-dev of Debian 12), which measures durations in Go programs,
# puts outliers into a bin of its histogram that they do not belong to. It goes through the sorted samples, and where
# one is above the bin at hand it goes on to the next bin and counts the sample there, however far above that it is
# (hgram in calcs.go). So bins without samples do not keep their place: what lies behind a gap counts as just above it.
# Round trips with a few retransmissions in them, which have such gaps, look as if they had a short tail. The
# percentiles beside it are right. Nothing is said. By its comment each bin is the "count of events that fall within the
# low-high time duration range" that it is named for.
#
# Seen, 98 samples of 20 to 24 ms, one of 520 and one of 1020 ms, ten bins of 100 ms: 98 in "20ms - 120ms", one in
# "120ms - 220ms" and one in "220ms - 320ms"; right are "420ms - 520ms" and "920ms - 1.02s". Max and p999 say 1.02s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet golang-github-jamiealquiza-tachymeter-dev=2.0.0-3 >log 2>&1 || { cat log >&2; exit 2; }
dpkg -x ./*.deb .
cat >main.go <<'END'
package main

import (
	"fmt"
	"time"

	"github.com/jamiealquiza/tachymeter"
)

func main() {
	meter := tachymeter.New(&tachymeter.Config{Size: 100, HBins: 10})
	for index := range 98 {
		meter.AddTime(time.Duration(20+index%5) * time.Millisecond)
	}
	meter.AddTime(520 * time.Millisecond)
	meter.AddTime(1020 * time.Millisecond)
	metrics := meter.Calc()
	for _, bin := range *metrics.Histogram {
		for name, count := range bin {
			fmt.Printf("%s: %d\n", name, count)
		}
	}
	fmt.Printf("bins of %s, p999 %s, maximum %s\n", metrics.HistogramBinSize, metrics.Time.P999, metrics.Time.Max)
}
END
# Debian's package has no go.mod: its source is taken from GOPATH.
GO111MODULE=off GOFLAGS= GOPATH="$dir/usr/share/gocode" go run main.go | tee told
cat >expected <<'END'
20ms - 120ms: 98
120ms - 220ms: 1
220ms - 320ms: 1
bins of 100ms, p999 1.02s, maximum 1.02s
END
diff expected told
