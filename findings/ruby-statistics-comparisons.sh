#!/bin/sh
# Three tests of ruby-statistics 2.1.1 (Debian 12), by which one tells whether two variants differ, are wrong
# (statistical_test/t_test.rb and f_test.rb). The paired t-test on both sides, as for the same seeds with two congestion
# controls, doubles what is above t, not above its absolute value. So where the second variant is the larger one, p is
# near 2 and nothing is ever found; with the two exchanged it is right. The test of one mean against a number has n
# degrees of freedom, where Student has n - 1, so p is too low. And one_way_anova of two groups compares their variances
# instead of their means ("we follow the classic F-Test for equality of variances"), with the degrees of freedom for
# means: 1 to 6 and 101 to 106 do not differ for it. With a third group it is right. Nothing is said.
#
# Seen: the same pairs 0.0001 one way and 1.9999 the other. Six values, t = 3.273: 0.0170, by 5 degrees of freedom
# 0.0221. 1 to 6 and 101 to 106: 0.3409, with 1 to 6 as a third group 0.0000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet ruby-statistics=2.1.1-2 ruby3.1 libruby3.1 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.rb <<'END'
require 'statistics'
require 'statistics/statistical_test'

T = Statistics::StatisticalTest::TTest
F = Statistics::StatisticalTest::FTest
slow = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
fast = [9.0, 9.5, 11.2, 12.1, 12.8, 14.0]
low, high = (1..6).to_a, (101..106).to_a

def tell(what, result)
  puts format('%s: p %.4f, differ %s', what, result[:p_value], result[:alternative])
end

tell 'slow and fast, paired', T.paired_test(0.05, :two_tail, slow, fast)
tell 'fast and slow, paired', T.paired_test(0.05, :two_tail, fast, slow)
tell 'slow against 10', T.perform(0.05, :two_tail, 10, slow)
t_score = T.perform(0.05, :two_tail, 10, slow)[:t_score]
cdf = Statistics::Distribution::TStudent.new(slow.size - 1).cumulative_function(t_score)
puts format('by n - 1: p %.4f', 2 * (1 - cdf))
tell 'low and high', F.one_way_anova(0.05, low, high)
tell 'low, high and low', F.one_way_anova(0.05, low, high, low)
END
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
gem=usr/share/rubygems-integration/all/gems/ruby-statistics-2.1.1/lib
usr/bin/ruby3.1 --disable-gems -I usr/lib/ruby/3.1.0 -I usr/lib/x86_64-linux-gnu/ruby/3.1.0 -I $gem run.rb | tee told
cat >expected <<'END'
slow and fast, paired: p 0.0001, differ true
fast and slow, paired: p 1.9999, differ false
slow against 10: p 0.0170, differ true
by n - 1: p 0.0221
low and high: p 0.3409, differ false
low, high and low: p 0.0000, differ true
END
diff expected told
