//! Why a configuration cannot be put to work.

use airtcp_edge::ThresholdTooSmall;

/// Why a configuration cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// See there.
    #[error("group {group:?}: {source}")]
    Threshold {
        /// Name of the group.
        group: String,
        /// What is wrong.
        source: ThresholdTooSmall,
    },
    /// An interface does not exist.
    #[error("group {group:?}: there is no interface {interface:?}")]
    Interface {
        /// Name of the group.
        group: String,
        /// Name of the interface.
        interface: String,
    },
    /// This machine makes no copies in the kernel.
    #[error(
        "group {group:?}: wake, the default, needs copies of packets, which this machine cannot make (Linux 6.4, CAP_BPF \
         and CAP_PERFMON; `airtcp doctor` tells what is missing); `mechanism = \"holdover\"` does without"
    )]
    Copies {
        /// Name of the group.
        group: String,
    },
    /// This machine makes no copies in the kernel.
    #[error(
        "mode = \"observe\" needs copies of packets, which this machine cannot make (Linux 6.4, CAP_BPF and CAP_PERFMON; \
         `airtcp doctor` tells what is missing)"
    )]
    NothingToSee,
    /// The kernel counts the packets of so many groups.
    #[error("more than {most} groups while the gateway observes: restart it")]
    TooManyObserved {
        /// Groups.
        most: usize,
    },
    /// It has connections with acknowledged bytes held only by the gateway.
    #[error(
        "group {group:?} cannot be removed or change its mechanism now: {committed} of its connections \
         have acknowledged bytes that their mobiles lack; try again when the mobiles are back"
    )]
    Committed {
        /// Name of the group.
        group: String,
        /// Connections.
        committed: usize,
    },
}
