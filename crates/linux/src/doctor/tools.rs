//! External programs that the live commands, their tests or their users run.

use super::{Check, Finding, GATEWAY, LiveCommand, NOBODY};
use crate::kernel::host;
use std::process::{Command, Stdio};

/// A program, with its option that prints the version and its Debian package.
struct Tool {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    helps: &'static [LiveCommand],
    purpose: &'static str,
}

const BOTH: &[LiveCommand] = &[LiveCommand::Link, LiveCommand::Gateway];

const TOOLS: &[Tool] = &[
    Tool {
        name: "ip",
        version: "-V",
        package: "iproute2",
        helps: BOTH,
        purpose: "namespaces and routes by hand",
    },
    Tool {
        name: "nft",
        version: "--version",
        package: "nftables",
        helps: GATEWAY,
        purpose: "rules of nftables",
    },
    Tool {
        name: "iptables",
        version: "--version",
        package: "iptables",
        helps: GATEWAY,
        purpose: "rules of iptables",
    },
    Tool {
        name: "iperf3",
        version: "--version",
        package: "iperf3",
        helps: BOTH,
        purpose: "measures throughput",
    },
    Tool {
        name: "tcpdump",
        version: "--version",
        package: "tcpdump",
        helps: BOTH,
        purpose: "captures packets",
    },
    Tool {
        name: "tshark",
        version: "--version",
        package: "tshark",
        helps: BOTH,
        purpose: "reads captures and recordings",
    },
    Tool {
        name: "promtool",
        version: "--version",
        package: "prometheus",
        helps: GATEWAY,
        purpose: "checks the metrics (tests only, with prometheus)",
    },
    Tool {
        name: "systemd-analyze",
        version: "--version",
        package: "systemd",
        helps: GATEWAY,
        purpose: "checks the unit (tests only)",
    },
];

pub(super) fn checks() -> Vec<Check> {
    let check = |tool: &Tool| tool.finding().named(tool.name, NOBODY, tool.helps, tool.purpose);
    TOOLS.iter().map(check).collect()
}

/// True if a program is installed.
pub(super) fn installed(name: &str) -> bool {
    host::program(name).is_some()
}

impl Tool {
    fn finding(&self) -> Finding {
        let Some(file) = host::program(self.name) else {
            return Finding::missing(
                "not installed",
                format!("install it (Debian: apt install {})", self.package),
            );
        };
        // Some programs print their version on standard error.
        let output = Command::new(&file).arg(self.version).stdin(Stdio::null()).output();
        let version = output.ok().and_then(|o| version(&o.stdout).or_else(|| version(&o.stderr)));
        Finding::ok(version.unwrap_or_else(|| file.display().to_string()))
    }
}

/// The first version number: a word that starts with a digit, or with `v` and a digit.
fn version(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let is_number = |word: &&str| {
        let word = word.strip_prefix('v').unwrap_or(word);
        word.starts_with(|c: char| c.is_ascii_digit())
    };
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '-'));
    words.into_iter().find(is_number).map(|word| word.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_programs_print_them() {
        for (printed, wanted) in [
            ("ip utility, iproute2-6.1.0, libbpf 1.1.2\n", "6.1.0"),
            ("nftables v1.0.6 (Lester Gooch #5)\n", "v1.0.6"),
            ("iptables v1.8.9 (nf_tables)\n", "v1.8.9"),
            ("iperf 3.12 (cJSON 1.7.15)\nLinux vm 6.18\n", "3.12"),
            ("tcpdump version 4.99.3\nlibpcap version 1.10.3\n", "4.99.3"),
            ("TShark (Wireshark) 4.0.17 (Git v4.0.17 packaged as 4.0.17-0+deb12u1).\n", "4.0.17"),
            ("promtool, version 2.42.0+ds (branch: debian/sid)\n", "2.42.0+ds"),
            ("systemd 252 (252.36-1~deb12u1)\n+PAM\n", "252"),
        ] {
            assert_eq!(version(printed.as_bytes()).as_deref(), Some(wanted), "{printed}");
        }
        assert_eq!(version(b"usage: tool\n"), None);
        assert_eq!(version(b""), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_missing_with_its_package() {
        let tool =
            Tool { name: "no-such-tool", version: "", package: "pack", helps: NOBODY, purpose: "" };
        assert_eq!(tool.finding().fix, "install it (Debian: apt install pack)");
        assert!(installed("sh") && !installed("no-such-tool"));
    }
}
