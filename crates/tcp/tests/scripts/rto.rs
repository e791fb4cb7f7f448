//! Policies of the retransmission time-out: Fixed RTO (Dyer and Boppana 2001), and a factor.

use crate::{config, run, run_open, window};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{RtoConfig, RtoPolicyConfig};

fn fixed() -> TcpConfig {
    let rto = RtoConfig { policy: RtoPolicyConfig::Fixed, ..RtoConfig::default() };
    TcpConfig { rto, ..window(2) }
}

#[test]
fn the_second_expiry_in_a_row_does_not_double_the_fixed_rto() {
    run_open(
        &fixed(),
        "0.200 write 1000
         0.200 > P. 1:1001(1000) ack 1
         1.200 > P. 1:1001(1000) ack 1
         3.200 > P. 1:1001(1000) ack 1
         5.200 > P. 1:1001(1000) ack 1
         7.200 > P. 1:1001(1000) ack 1
         7.200 ? rto 2 timeouts 4",
    );
}

// "until the segment is acknowledged": then an expiry is the first one again.
#[test]
fn an_ack_ends_the_row_of_expiries() {
    run_open(
        &fixed(),
        "0.200 write 1000
         0.200 > P. 1:1001(1000) ack 1
         1.200 > P. 1:1001(1000) ack 1
         3.200 > P. 1:1001(1000) ack 1
         3.300 < ack 1001
         # A sample, on new data, ends the back-off.
         4.000 write 1000
         4.000 > P. 1001:2001(1000) ack 1
         4.100 < ack 2001
         5.000 write 1000
         5.000 > P. 2001:3001(1000) ack 1
         6.000 > P. 2001:3001(1000) ack 1
         8.000 > P. 2001:3001(1000) ack 1
         10.000 > P. 2001:3001(1000) ack 1",
    );
}

#[test]
fn a_syn_backs_off_as_usual() {
    run(
        &fixed(),
        "0.000 connect
         0.000 > S 0:0(0)
         1.000 > S 0:0(0)
         3.000 > S 0:0(0)
         7.000 > S 0:0(0)
         15.000 > S 0:0(0)",
    );
}

#[test]
fn the_constant_rto_doubles_for_a_syn_only() {
    let rto = RtoConfig { policy: RtoPolicyConfig::Constant, ..RtoConfig::default() };
    let config = TcpConfig { rto, ..window(2) };
    run_open(
        &config,
        "0.200 write 1000
         0.200 > P. 1:1001(1000) ack 1
         1.200 > P. 1:1001(1000) ack 1
         2.200 > P. 1:1001(1000) ack 1
         3.200 > P. 1:1001(1000) ack 1",
    );
    run(
        &config,
        "0.000 connect
         0.000 > S 0:0(0)
         1.000 > S 0:0(0)
         3.000 > S 0:0(0)",
    );
}

// TCP-DCA, Table II: TCP-DAA's sender.
#[test]
fn a_factor_multiplies_the_time_out() {
    let rto = RtoConfig { factor: 5, ..RtoConfig::default() };
    run_open(
        &TcpConfig { rto, ..config() },
        "0.200 write 1000
         0.200 > P. 1:1001(1000) ack 1
         5.200 > P. 1:1001(1000) ack 1
         15.200 > P. 1:1001(1000) ack 1",
    );
}
