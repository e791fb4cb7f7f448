//! Which mobiles a group's programs look after, for a map whose longest match counts.
//!
//! Of the configuration the *first* group that has an address counts. Entered in the order of the groups, leaving
//! out what lies within an entry that is there already, the longest match is the first one.

use crate::gateway::config::Group;
use ipnet::IpNet;
use std::collections::BTreeMap;

/// By index of the interface and prefix: whether it is the group's own (false: it belongs to a group before it).
pub(super) type Prefixes = BTreeMap<(u32, IpNet), bool>;

/// What the programs of `group`, which is one of `groups`, are to be told; `indices` are those of its interfaces.
pub(super) fn prefixes(groups: &[Group], group: &str, indices: &BTreeMap<String, u32>) -> Prefixes {
    let mut prefixes = Prefixes::new();
    for (interface, &index) in indices {
        let mut entered: Vec<IpNet> = Vec::new();
        for one in groups {
            let is_own = one.name == group;
            if one.interfaces.is_empty() || one.interfaces.contains(interface) {
                for net in &one.addresses {
                    if !entered.iter().any(|earlier| earlier.contains(net)) {
                        entered.push(*net);
                        prefixes.insert((index, *net), is_own);
                    }
                }
            }
            if is_own {
                // What groups behind it have besides is not its own anyway.
                break;
            }
        }
    }
    prefixes
}
