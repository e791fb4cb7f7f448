//! Flow tables of nftables, which forward established connections without netfilter's hooks.
//!
//! Read first: Documentation/networking/nf_flowtable.rst of Linux; linux/netfilter/nf_tables.h.

use crate::kernel::netlink::{Message, Netlink, attributes, name, u32_at};
use std::fmt;

/// Size of `struct nfgenmsg`.
const FAMILY_HEADER: usize = 4;
const NFT_MSG_GETFLOWTABLE: i32 = 23;
const NFTA_FLOWTABLE_TABLE: u16 = 1;
const NFTA_FLOWTABLE_NAME: u16 = 2;
const NFTA_FLOWTABLE_FLAGS: u16 = 7;
const NFT_FLOWTABLE_HW_OFFLOAD: u32 = 1;

/// A flow table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    pub(crate) table: String,
    pub(crate) name: String,
    /// The network card forwards, if it can (`flags offload`).
    pub is_by_hardware: bool,
}

impl fmt::Display for FlowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, name, .. } = self;
        write!(f, "flow table {name} of table {table}")
    }
}

impl FlowTable {
    fn parse(body: &[u8]) -> Self {
        let mut found = Self::default();
        for (kind, value) in attributes(body.get(FAMILY_HEADER..).unwrap_or_default()) {
            let text = || name(value).unwrap_or_default().to_owned();
            match kind {
                NFTA_FLOWTABLE_TABLE => found.table = text(),
                NFTA_FLOWTABLE_NAME => found.name = text(),
                NFTA_FLOWTABLE_FLAGS => {
                    let flags = u32_at(value, 0).map_or(0, u32::from_be);
                    found.is_by_hardware = flags & NFT_FLOWTABLE_HW_OFFLOAD != 0;
                }
                _ => {}
            }
        }
        found
    }
}

/// The flow tables of the calling thread's network namespace; none if the kernel does not tell.
pub fn all() -> Vec<FlowTable> {
    let request = Message::netfilter(
        libc::NFNL_SUBSYS_NFTABLES,
        NFT_MSG_GETFLOWTABLE,
        libc::NLM_F_DUMP,
        libc::AF_UNSPEC,
        0,
    );
    let listed =
        Netlink::open(libc::NETLINK_NETFILTER).and_then(|netlink| netlink.dump(&request.finish()));
    listed.unwrap_or_default().iter().map(|(_, body)| FlowTable::parse(body)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::netlink::{one, one_name};

    #[test]
    fn a_flow_table_is_read_as_the_kernel_writes_it() {
        let mut body = vec![1, 0, 0, 0];
        body.extend(one_name(NFTA_FLOWTABLE_TABLE, "fw4"));
        body.extend(one_name(NFTA_FLOWTABLE_NAME, "ft"));
        assert_eq!(FlowTable::parse(&body).to_string(), "flow table ft of table fw4");
        assert!(!FlowTable::parse(&body).is_by_hardware);
        body.extend(one(NFTA_FLOWTABLE_FLAGS, &3_u32.to_be_bytes()));
        assert!(FlowTable::parse(&body).is_by_hardware);
    }
}
