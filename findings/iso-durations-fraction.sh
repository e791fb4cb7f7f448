#!/bin/sh
# Three packages that read ISO 8601 durations, as in the manifests of DASH, drop fractions of seconds. The Go module
# github.com/channelmeter/iso8601duration (at 8da3af7a2a61) has a regular expression for whole numbers that need not
# match to the end (full in duration.go): "PT1.5S" is 0 s, and "P2W3D" two weeks. date-duration 2.0.0 (npm) looks for
# the parts one by one (index.js) and drops the seconds whole, but for those alone, as in "PT1.5S", it throws an error.
# date-fns-duration 1.0.4 (npm) takes fractions and adds them with functions of date-fns 2.0.1 that cut them off. By ISO
# 8601 the last part may have a fraction, and so may the seconds by XML Schema (Part 2, 3.2.6), which DASH goes by;
# encoders write them. A player's buffer of 1.5 s is then none, or one of 1 s. No error is returned. iso8601-duration
# 2.1.4 and tinyduration 3.4.1 (npm) are right.
#
# Seen, PT1.5S and PT9M56.46S: the Go module 0 and 540 s, date-duration an error and 540, date-fns-duration 1 and 596,
# the other two 1.5 and 596.46.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'END'
module finding

go 1.24

require github.com/channelmeter/iso8601duration v0.0.0-20150204201828-8da3af7a2a61
END
cat >main.go <<'END'
package main

import (
	"fmt"

	duration "github.com/channelmeter/iso8601duration"
)

func main() {
	fmt.Print("iso8601duration of Go:")
	for _, text := range []string{"PT1.5S", "PT9M56.46S"} {
		told, err := duration.FromString(text)
		if err != nil {
			panic(err)
		}
		fmt.Printf(" %v s", told.ToDuration().Seconds())
	}
	fmt.Println()
}
END
cat >package.json <<'END'
{"private": true, "type": "module"}
END
npm install --silent --no-audit --no-fund date-duration@2.0.0 date-fns-duration@1.0.4 date-fns@2.0.1 \
    iso8601-duration@2.1.4 tinyduration@3.4.1
cat >run.js <<'END'
import Duration from 'date-duration'
import addDuration from 'date-fns-duration'
import { parse, toSeconds } from 'iso8601-duration'
import tinyduration from 'tinyduration'

const readers = {
  'date-duration': text => new Duration(text).addTo(new Date(0)) / 1000,
  'date-fns-duration': text => addDuration(new Date(0), text) / 1000,
  'iso8601-duration': text => toSeconds(parse(text)),
  tinyduration: text => {
    const { minutes = 0, seconds = 0 } = tinyduration.parse(text)
    return 60 * minutes + seconds
  }
}
for (const [name, read] of Object.entries(readers)) {
  const told = ['PT1.5S', 'PT9M56.46S'].map(text => {
    try {
      return `${read(text)} s`
    } catch {
      return 'error'
    }
  })
  console.log(`${name}: ${told.join(' ')}`)
}
END
{ GOFLAGS=-mod=mod go run . && node run.js; } | tee told
cat >expected <<'END'
iso8601duration of Go: 0 s 540 s
date-duration: error 540 s
date-fns-duration: 1 s 596 s
iso8601-duration: 1.5 s 596.46 s
tinyduration: 1.5 s 596.46 s
END
diff expected told
