#!/bin/sh
# @sgratzl/boxplots 2.0.0 (npm), which computes the box plots of a plugin for Chart.js, takes two values for the same if
# they are less than 0.01 apart (boxplot and computeWhiskers in index.js: eps, "delta epsilon to compare"), in whatever
# unit they are. So a whisker ends at the last value less than 0.01 beyond its limit, and of outliers that near to each
# other one is drawn. Round trips in seconds have whiskers up to 10 ms too long and fewer outliers, loss as a share few
# or none; the same numbers in milliseconds or per cent are another plot. Nothing is said. By Tukey (Exploratory Data
# Analysis, 2D), whose rule of 1.5 it takes, a whisker ends at the last value within 1.5 times the width of the box, and
# each value beyond is drawn.
#
# Seen, round trips of 20 to 30 ms and seven longer ones: in ms the whisker ends at 30 and seven are outliers; in s it
# ends at 0.044 and two are. Loss of 0 to 1 % and four higher: in per cent four outliers, as a share none.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @sgratzl/boxplots@2.0.0
cat >run.mjs <<'END'
import { boxplot } from '@sgratzl/boxplots'

const roundTrips = [...Array(5)].flatMap(() => [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30])
  .concat(41, 42, 44, 60, 63, 66, 90)
const losses = [...Array(5)].flatMap(() => [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1])
  .concat(2.2, 2.3, 2.4, 2.5)
const show = (values) => values.map((value) => Number(value.toPrecision(4))).join(' ') || 'none'
for (const [name, values, divisor] of [
  ['round trips in ms', roundTrips, 1],
  ['round trips in s', roundTrips, 1000],
  ['loss in %', losses, 1],
  ['loss as a share', losses, 100],
]) {
  const { whiskerLow, whiskerHigh, outlier } = boxplot(values.map((value) => value / divisor))
  console.log(`${name}: whiskers ${show([whiskerLow, whiskerHigh])}, outliers ${show(outlier)}`)
}
END
node run.mjs | tee told
cat >expected <<'END'
round trips in ms: whiskers 20 30, outliers 41 42 44 60 63 66 90
round trips in s: whiskers 0.02 0.044, outliers 0.066 0.09
loss in %: whiskers 0 1, outliers 2.2 2.3 2.4 2.5
loss as a share: whiskers 0 0.025, outliers none
END
diff expected told
