//! Why a configuration cannot be put to work.

use airtcp_edge::ThresholdTooSmall;

/// A configuration that cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// Packet Control's threshold is too small.
    #[error("group {group:?}: {source}")]
    Threshold {
        /// Name of the group.
        group: String,
        /// The bound it violates.
        source: ThresholdTooSmall,
    },
    /// This machine makes no copies in the kernel.
    #[error(
        "group {group:?}: wake, the default, needs copies of packets, which this machine cannot make (Linux 5.12, CAP_BPF \
         and CAP_PERFMON; `airtcp doctor` tells what is missing); `mechanism = \"holdover\"` does without"
    )]
    NoMirror {
        /// Name of the group.
        group: String,
    },
    /// This machine makes no copies in the kernel.
    #[error(
        "mode = \"observe\" needs copies of packets, which this machine cannot make (Linux 5.12, CAP_BPF and CAP_PERFMON; \
         `airtcp doctor` tells what is missing)"
    )]
    NothingToSee,
    /// The kernel counts the packets of so many groups.
    #[error("more than {most} groups while the gateway observes: restart it")]
    TooManyObserved {
        /// Most groups that can be observed.
        most: usize,
    },
    /// Connections that it holds up for mobiles that are away have no group that could go on with
    /// them.
    #[error(
        "group {group:?}: {connections} of its connections are held up for mobiles that are away, and the new \
         configuration has no group with {mechanism} for them; try again when the mobiles are back, or restart the \
         gateway, which resets the connections"
    )]
    Interrupted {
        /// Name of the group.
        group: String,
        /// Number of connections held up.
        connections: usize,
        /// Word of its mechanism.
        mechanism: &'static str,
    },
}
