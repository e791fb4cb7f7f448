//! Parsers of the kernel's files; pure functions, so that they can be tested with recorded files.

/// Capabilities (capabilities(7)); values are their bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capability {
    NetAdmin = 12,
    NetRaw = 13,
    SysAdmin = 21,
    Perfmon = 38,
    Bpf = 39,
}

impl Capability {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
    pub(super) fn is_in(self, set: u64) -> bool {
        set >> (self as u64) & 1 == 1
    }
}

/// The effective capabilities in /proc/self/status (proc_pid_status(5)).
pub(super) fn effective_capabilities(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// True if /proc/self/uid_map is that of the initial user namespace (user_namespaces(7)): root in a
/// container's user namespace is not root of the machine.
pub(super) fn is_initial_user_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// True if the kernel's type information (BTF) contains `name` as a complete string. `None` if
/// `btf` is not BTF. Format: Documentation/bpf/btf.rst of Linux, `struct btf_header`.
pub(super) fn btf_knows(btf: &[u8], name: &str) -> Option<bool> {
    const MAGIC: u16 = 0xeb9f;
    let word = |at: usize| Some(u32::from_ne_bytes(btf.get(at..at + 4)?.try_into().ok()?) as usize);
    if btf.get(..2)? != MAGIC.to_ne_bytes() {
        return None;
    }
    let start = word(4)?.checked_add(word(16)?)?;
    let strings = btf.get(start..start.checked_add(word(20)?)?)?;
    Some(strings.split(|byte| *byte == 0).any(|string| string == name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_of_root_and_of_nobody() {
        // Recorded: Linux 6.18, a root without CAP_SYS_RESOURCE; su nobody.
        let status =
            "Name:\tcat\nCapPrm:\t000001fffeffffff\nCapEff:\t000001fffeffffff\nCapBnd:\t0\n";
        let root = effective_capabilities(status).unwrap();
        use Capability::{Bpf, NetAdmin, NetRaw, Perfmon, SysAdmin};
        for capability in [NetAdmin, NetRaw, SysAdmin, Perfmon, Bpf] {
            assert!(capability.is_in(root), "{capability:?}");
        }
        assert_eq!(effective_capabilities("CapEff:\t0000000000000000\n"), Some(0));
        assert!(!NetAdmin.is_in(0));
        assert!(NetAdmin.is_in(0x1000) && !NetRaw.is_in(0x1000));
        assert_eq!(effective_capabilities("Name:\tcat\n"), None);
        assert_eq!(effective_capabilities("CapEff:\tx\n"), None);
    }

    #[test]
    fn the_initial_user_namespace_is_recognised() {
        assert!(is_initial_user_namespace("         0          0 4294967295\n"));
        assert!(!is_initial_user_namespace("         0     100000      65536\n"));
        assert!(!is_initial_user_namespace("0 0 1\n1 100000 65535\n"));
        assert!(!is_initial_user_namespace(""));
    }

    #[test]
    fn types_are_found_in_btf_by_their_whole_names() {
        let strings = b"\0bpf_nf_link\0bpf_struct_ops_tcp_congestion_ops\0";
        let mut btf = 0xeb9f_u16.to_ne_bytes().to_vec();
        btf.extend([1, 0]);
        // Length of the header; types: offset, length; strings: offset, length.
        for word in [24, 0, 8, 8, strings.len() as u32] {
            btf.extend(word.to_ne_bytes());
        }
        btf.extend([0; 8]);
        btf.extend(strings);
        assert_eq!(btf_knows(&btf, "bpf_nf_link"), Some(true));
        assert_eq!(btf_knows(&btf, "bpf_nf"), Some(false));
        assert_eq!(btf_knows(&btf[..40], "bpf_nf_link"), None);
        assert_eq!(btf_knows(b"", "bpf_nf_link"), None);
        assert_eq!(btf_knows(b"ELF", "bpf_nf_link"), None);
    }
}
