//! The mechanisms from outside, as scripts and properties. They are one program: each would
//! compile all the mechanisms anew.

mod holdover;
mod journal;
mod m_tcp;
mod m_tcp_plus;
mod observe;
mod packet_control;
mod probing;
mod replay;
mod script;
mod script_in_words;
mod segments;
mod snoop;
mod turns;
mod wake;
