#!/bin/sh
# The Go module github.com/VividCortex/gohistogram v1.0.0 has a histogram for percentiles of the recent past, in which
# old samples lose weight (NewWeightedHistogram). By its documentation alpha is 2 / (N + 1), 0.0645 for a minute of
# samples that are 30 s old on average. With each new sample it multiplies the weight of the others by alpha (ewma in
# weightedhistogram.go), where 1 - alpha belongs. So the newest sample has 93 % of the weight, and the median is the
# round trip that was measured last, an outlier or not. With a new sample above all others they do not lose weight at
# all. Nothing is said. By the usual definition, for which alpha is 2 / (N + 1), an average becomes alpha times the
# sample plus 1 - alpha times itself. What helps: 1 - alpha for alpha.
#
# Seen, round trips spread evenly over 100 to 200 ms, the median asked for after each of 900: 895 times it is the newest
# one, anywhere from 100 to 200 ms, and Count() is 1.1. With 1 - alpha it is 144 to 156 ms, and Count() 15.6; right is 1
# / alpha, 15.5.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24

require github.com/VividCortex/gohistogram v1.0.0
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"math"
	"os"

	"github.com/VividCortex/gohistogram"
)

// summary is how often the median is the newest sample, its range in ms, and the mean of the count.
func summary(alpha float64) string {
	const samples, first = 1000, 100
	histogram := gohistogram.NewWeightedHistogram(80, alpha)
	newest, least, most, count := 0, math.Inf(1), 0.0, 0.0
	for index := range samples {
		// Multiples of the golden ratio, modulo 1, are even and in no order.
		_, fraction := math.Modf(float64(index) * math.Phi)
		roundTrip := 100 + 100*fraction
		histogram.Add(roundTrip)
		if index < first {
			continue
		}
		median := histogram.Quantile(0.5)
		least, most, count = min(least, median), max(most, median), count+histogram.Count()
		if math.Abs(median-roundTrip) < 1 {
			newest++
		}
	}
	return fmt.Sprintf("%d of %d medians the newest sample, %.0f to %.0f ms, count %.1f",
		newest, samples-first, least, most, count/(samples-first))
}

func main() {
	const alpha = 2.0 / (30 + 1)
	told := summary(alpha)
	fmt.Printf("alpha: %s\n1 - alpha: %s\n", told, summary(1-alpha))
	if told != "895 of 900 medians the newest sample, 100 to 200 ms, count 1.1" {
		os.Exit(1)
	}
}
END
go mod tidy >log 2>&1 || { cat log >&2; exit 2; }
go run .
