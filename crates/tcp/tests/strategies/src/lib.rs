//! One strategy of each kind that an endpoint takes, written against the public interface of
//! `airtcp-tcp` alone, and a small network to run them over.
//!
//! They show that the interface suffices: what is built here compiles and runs without a change to
//! the endpoint. They are modelled on published algorithms but simplified; none is validated.

pub mod ack;
pub mod congestion;
pub mod network;
pub mod route;
pub mod rto;
