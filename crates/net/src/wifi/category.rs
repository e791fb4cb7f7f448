//! The access categories of EDCA (IEEE Std 802.11-2020, §10.2.3.2 and §10.23.2), and which packet
//! belongs to which.

use crate::wifi::config::{MacConfig, WINDOW, WifiError};
use crate::wifi::standard::{AIFSN, check_txop};
use airtcp_core::{Dscp, Duration};
use airtcp_settings::schema::{Key, Kind, Table};
use airtcp_settings::{InTable, Reader, Settings, Value, settings};

/// An access category; a later one has priority over an earlier one in the same station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessCategory {
    /// AC_BK.
    Background,
    /// AC_BE.
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

impl AccessCategory {
    /// All of them, in ascending order of priority.
    pub const ALL: [Self; 4] = [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    /// Its place in [`Self::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A user priority of IEEE 802.1D, which is also the TID of a packet: 0 to 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserPriority(u8);

impl UserPriority {
    /// Best effort, and that of all packets where there are no categories.
    pub const DEFAULT: Self = Self(0);

    /// That of a packet with this DSCP: its upper three bits, except where RFC 8325 §4 says otherwise
    /// of a DSCP that is in use. So it is in Linux from 6.12 on (`cfg80211_classify8021d` without a
    /// QoS Map). (From 6.8 to 6.11 it takes the three bits of AF3x, which is then best effort; before,
    /// of all: EF is video.)
    pub const fn of(dscp: Dscp) -> Self {
        Self(match dscp.bits() {
            // AF1x (bulk data) and CS2 (management).
            10 | 12 | 14 | 16 => 0,
            // AF2x (interactive data).
            18 | 20 | 22 => 3,
            // CS3 (broadcast video) and AF3x (multimedia streaming).
            24 | 26 | 28 | 30 => 4,
            // VOICE-ADMIT and EF (voice).
            44 | 46 => 6,
            // CS6 (routing).
            48 => 7,
            _ => dscp.precedence(),
        })
    }

    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The access category of its packets (§10.2.3.2, Table 10-1).
    pub const fn category(self) -> AccessCategory {
        match self.0 {
            1 | 2 => AccessCategory::Background,
            4 | 5 => AccessCategory::Video,
            6 | 7 => AccessCategory::Voice,
            _ => AccessCategory::BestEffort,
        }
    }
}

settings! {
    #[partial]
    /// Parameters of one access category.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CategoryConfig {
        /// Slots of AIFS, the interframe space in front of data and RTS, after its SIFS.
        #[kind = AIFSN]
        pub aifsn: u32,
        /// Smallest contention window, slots; 2^k - 1.
        #[kind = WINDOW]
        pub cw_min: u32,
        /// Largest contention window, slots; 2^k - 1.
        #[kind = WINDOW]
        pub cw_max: u32,
        /// TXOP limit, a multiple of 32 us: for so long a station that has won the medium for this
        /// category may go on with its packets. Zero: one exchange.
        #[source = "802.11-2020 §10.23.2.8"]
        pub txop_limit: Duration,
    }
}

/// Absent keys have the standard's values.
static CATEGORY: Table = Table::new(
    "wlan.access-categories.category",
    "Parameters of one access category.",
    &[Key::Otherwise("as 802.11-2020 Table 9-155", CategoryConfig::KEYS)],
);

impl InTable for CategoryConfig {
    const TABLE: &'static Table = &CATEGORY;
}

impl Value for CategoryConfig {
    const KIND: Kind = Kind::Table(&CATEGORY);
    fn read<R: Reader>(from: &R, key: &str, base: Option<&Self>) -> Option<Self> {
        Settings::read(&from.table(key)?, base)
    }
    fn show(&self, _: &Kind) -> Option<String> {
        Some(airtcp_settings::show_table(self))
    }
}

settings! {
    /// EDCA's four access categories. Each has a queue of its own in every station, its own back-off
    /// and retries, and A-MPDUs and A-MSDUs of its packets alone. A packet's category follows from
    /// its DSCP ([`UserPriority::of`]).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AccessCategories {
        /// AC_BK.
        #[absent = "`aifsn = 7`, `cw-min = 15`, `cw-max = 1023`, `txop-limit = \"2528 us\"`"]
        #[source = "802.11-2020 Table 9-155"]
        pub background: CategoryConfig = CategoryConfig {
            aifsn: 7,
            cw_min: 15,
            cw_max: 1023,
            txop_limit: Duration::from_micros(2_528),
        },
        /// AC_BE.
        #[absent = "`aifsn = 3`, `cw-min = 15`, `cw-max = 1023`, `txop-limit = \"2528 us\"`"]
        #[source = "802.11-2020 Table 9-155"]
        pub best_effort: CategoryConfig = CategoryConfig {
            aifsn: 3,
            cw_min: 15,
            cw_max: 1023,
            txop_limit: Duration::from_micros(2_528),
        },
        /// AC_VI.
        #[absent = "`aifsn = 2`, `cw-min = 7`, `cw-max = 15`, `txop-limit = \"4096 us\"`"]
        #[source = "802.11-2020 Table 9-155"]
        pub video: CategoryConfig = CategoryConfig {
            aifsn: 2,
            cw_min: 7,
            cw_max: 15,
            txop_limit: Duration::from_micros(4_096),
        },
        /// AC_VO.
        #[absent = "`aifsn = 2`, `cw-min = 3`, `cw-max = 7`, `txop-limit = \"2080 us\"`"]
        #[source = "802.11-2020 Table 9-155"]
        pub voice: CategoryConfig = CategoryConfig {
            aifsn: 2,
            cw_min: 3,
            cw_max: 7,
            txop_limit: Duration::from_micros(2_080),
        },
    }
}

/// The keys of [`AccessCategories`].
static CATEGORIES: Table = Table::new(
    "wlan.access-categories",
    "EDCA's four access categories. Each has a queue of its own in every station, its own back-off \
     and retries, and A-MPDUs and A-MSDUs of its packets alone. A packet's category follows from its \
     DSCP as in Linux: EF, VOICE-ADMIT, CS6 and CS7 are voice; CS3 to CS5, AF3x and AF4x video; CS0, \
     LE, CS2, AF1x and AF2x best effort; CS1 background; other numbers go by their upper three bits. An \
     empty table has the standard's values.",
    AccessCategories::KEYS,
);

impl InTable for AccessCategories {
    const TABLE: &'static Table = &CATEGORIES;
}

impl Value for AccessCategories {
    const KIND: Kind = Kind::Table(&CATEGORIES);
    /// What a category leaves out is as in the standard.
    fn read<R: Reader>(from: &R, key: &str, base: Option<&Self>) -> Option<Self> {
        let standard = Self::default();
        Settings::read(&from.table(key)?, Some(base.unwrap_or(&standard)))
    }
    fn show(&self, _: &Kind) -> Option<String> {
        Some(airtcp_settings::show_table(self))
    }
}

impl AccessCategories {
    /// The parameters of a category.
    pub fn of(&self, category: AccessCategory) -> &CategoryConfig {
        match category {
            AccessCategory::Background => &self.background,
            AccessCategory::BestEffort => &self.best_effort,
            AccessCategory::Video => &self.video,
            AccessCategory::Voice => &self.voice,
        }
    }

    /// The smallest AIFSN.
    pub(super) fn least_aifsn(&self) -> u32 {
        let all = AccessCategory::ALL.map(|category| self.of(category).aifsn);
        all.into_iter().min().unwrap_or_default()
    }

    /// Refuses what the standard cannot express.
    pub(super) fn check(&self) -> Result<(), WifiError> {
        let keys = ["background", "best-effort", "video", "voice"];
        for (category, which) in AccessCategory::ALL.into_iter().zip(keys) {
            let &CategoryConfig { cw_min, cw_max, txop_limit, .. } = self.of(category);
            let txop = || check_txop(txop_limit).map_err(WifiError::Mimo);
            MacConfig::check_windows(cw_min, cw_max)
                .and_then(|()| txop())
                .map_err(|error| WifiError::Category { which, error: Box::new(error) })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_priorities_belong_to_the_categories_of_table_10_1() {
        use AccessCategory::{Background, BestEffort, Video, Voice};
        let expected = [BestEffort, Background, Background, BestEffort, Video, Video, Voice, Voice];
        let of = |priority| UserPriority(priority).category();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(of), expected);
    }

    #[test]
    fn a_dscp_has_the_user_priority_of_rfc_8325() {
        // RFC 8325 §4, Figure 1. LE (RFC 8622) came later.
        let expected = [
            (0, "CS0 LE AF11 AF12 AF13 CS2"),
            (1, "CS1"),
            (3, "AF21 AF22 AF23"),
            (4, "CS3 CS4 AF31 AF32 AF33 AF41 AF42 AF43"),
            (5, "CS5"),
            (6, "VOICE-ADMIT EF"),
            (7, "CS6 CS7"),
        ];
        for (priority, names) in expected {
            for name in names.split(' ') {
                let dscp = Dscp::named(name).expect("it has a number");
                assert_eq!(UserPriority::of(dscp), UserPriority(priority), "{name}");
            }
        }
        // Others: the upper three bits.
        assert_eq!(UserPriority::of(Dscp::new(63).expect("it is in range")), UserPriority(7));
    }

    #[test]
    fn the_defaults_are_those_of_table_9_155() {
        // aCWmin is 15, aCWmax 1023. AC_VI: CWmin (15 + 1) / 2 - 1, CWmax 15; AC_VO: (15 + 1) / 4 - 1
        // and (15 + 1) / 2 - 1.
        let AccessCategories { background, best_effort, video, voice } = Default::default();
        let windows = |it: CategoryConfig| (it.aifsn, it.cw_min, it.cw_max);
        assert_eq!(windows(background), (7, 15, 1023));
        assert_eq!(windows(best_effort), (3, 15, 1023));
        assert_eq!(windows(video), (2, 7, 15));
        assert_eq!(windows(voice), (2, 3, 7));
    }
}
