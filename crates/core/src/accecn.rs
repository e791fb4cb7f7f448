//! The AccECN option of TCP (RFC 9768 §3.2.3): how many bytes of payload arrived with each ECN
//! field.

use crate::segment::Ecn;

/// Counters and fields of the option have 24 bits.
const MASK: u32 = 0x00ff_ffff;
/// Bytes of a field.
const FIELD: usize = 3;

/// The counter that the option begins with. The CE counter is always in the middle, and the last
/// ones may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccEcnOrder {
    /// Kind 172: ECT(0), CE, ECT(1).
    Ect0First,
    /// Kind 174: ECT(1), CE, ECT(0).
    Ect1First,
}

impl AccEcnOrder {
    /// The kind of the option (RFC 9768 §7).
    pub const fn kind(self) -> u8 {
        match self {
            Self::Ect0First => 172,
            Self::Ect1First => 174,
        }
    }

    /// The order of the option with this kind.
    pub const fn from_kind(kind: u8) -> Option<Self> {
        match kind {
            172 => Some(Self::Ect0First),
            174 => Some(Self::Ect1First),
            _ => None,
        }
    }

    const fn fields(self) -> [Ecn; 3] {
        match self {
            Self::Ect0First => [Ecn::Ect0, Ecn::Ce, Ecn::Ect1],
            Self::Ect1First => [Ecn::Ect1, Ecn::Ce, Ecn::Ect0],
        }
    }

    /// Number of fields that the option needs to include the counter of `ecn`; 0 for Not-ECT, which
    /// is not counted.
    pub fn fields_for(self, ecn: Ecn) -> usize {
        self.fields().iter().position(|field| *field == ecn).map_or(0, |place| place + 1)
    }
}

/// Three counters of payload bytes by ECN field, in 24 bits each. They wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EcnBytes {
    /// Bytes received with ECT(0): the counter r.e0b of RFC 9768.
    pub ect0: u32,
    /// Bytes received with ECT(1): r.e1b.
    pub ect1: u32,
    /// Bytes received with CE: r.ceb.
    pub ce: u32,
}

impl EcnBytes {
    /// Initial values of the counters: ECT at 1, so that a field that was zeroed on the path is
    /// found out (RFC 9768 §3.2.1).
    pub const INITIAL: Self = Self { ect0: 1, ect1: 1, ce: 0 };

    /// The counter of `ecn`; `None` for packets that are not ECN-capable.
    pub const fn get(&self, ecn: Ecn) -> Option<u32> {
        match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(self.ect0),
            Ecn::Ect1 => Some(self.ect1),
            Ecn::Ce => Some(self.ce),
        }
    }

    /// Counts `bytes` of payload.
    pub fn add(&mut self, ecn: Ecn, bytes: u32) {
        let counter = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => &mut self.ect0,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ce => &mut self.ce,
        };
        *counter = counter.wrapping_add(bytes) & MASK;
    }
}

/// The option: up to three counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccEcnOption {
    order: AccEcnOrder,
    len: u8,
    /// As on the wire. Bytes beyond `len` fields are zero.
    fields: [u8; 3 * FIELD],
}

impl AccEcnOption {
    /// Length without any field: kind and length.
    const BARE: usize = 2;

    /// The first `fields` of the counters; at most three.
    pub fn new(order: AccEcnOrder, bytes: &EcnBytes, fields: usize) -> Self {
        let mut option = Self { order, len: fields.min(3) as u8, fields: [0; 3 * FIELD] };
        for (place, ecn) in order.fields().into_iter().take(fields).enumerate() {
            let [_, field @ ..] = bytes.get(ecn).unwrap_or(0).to_be_bytes();
            option.fields[place * FIELD..][..FIELD].copy_from_slice(&field);
        }
        option
    }

    /// The option whose kind stands for `order`, from the bytes behind kind and length. Bytes
    /// that fill no whole field, or follow the third one, are ignored (RFC 9768 §3.2.3).
    pub fn from_wire(order: AccEcnOrder, bytes: &[u8]) -> Self {
        let len = (bytes.len() / FIELD).min(3);
        let mut fields = [0; 3 * FIELD];
        fields[..len * FIELD].copy_from_slice(&bytes[..len * FIELD]);
        Self { order, len: len as u8, fields }
    }

    /// The fields, as they stand behind kind and length.
    pub fn wire(&self) -> &[u8] {
        &self.fields[..usize::from(self.len) * FIELD]
    }

    /// The order of the fields.
    pub const fn order(&self) -> AccEcnOrder {
        self.order
    }

    /// The counter of `ecn`, in 24 bits, if the option has it.
    pub fn get(&self, ecn: Ecn) -> Option<u32> {
        let place = self.order.fields_for(ecn).checked_sub(1)?;
        let field = self.wire().get(place * FIELD..)?.first_chunk::<FIELD>()?;
        Some(u32::from_be_bytes([0, field[0], field[1], field[2]]))
    }

    /// An ECT counter is zero, which none is at first: the path has zeroed it (RFC 9768
    /// §3.2.3.2.4). For the first option of a connection.
    pub fn is_zeroed(&self) -> bool {
        [Ecn::Ect0, Ecn::Ect1].into_iter().any(|ecn| self.get(ecn) == Some(0))
    }

    /// Length with kind and length, without padding.
    pub const fn len(&self) -> usize {
        Self::BARE + self.len as usize * FIELD
    }

    /// No counter: the option shows only that it gets through.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of an option with `fields` counters, padded to whole words.
    pub const fn padded_len(fields: usize) -> usize {
        (Self::BARE + fields * FIELD).next_multiple_of(4)
    }
}

impl std::fmt::Debug for AccEcnOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// `ECN e1b 1 ceb 0 e0b 1`
impl std::fmt::Display for AccEcnOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ECN")?;
        for ecn in self.order.fields() {
            let name = match ecn {
                Ecn::Ect0 => "e0b",
                Ecn::Ect1 => "e1b",
                _ => "ceb",
            };
            if let Some(bytes) = self.get(ecn) {
                write!(f, " {name} {bytes}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: EcnBytes = EcnBytes { ect0: 0x01_02_03, ect1: 0x04_05_06, ce: 0x07_08_09 };

    // RFC 9768 §3.2.3, figure 4 and table 5: both orders, CE in the middle, 24 bits a field.
    #[test]
    fn fields_stand_in_the_order_of_the_kind() {
        let first_ect0 = AccEcnOption::new(AccEcnOrder::Ect0First, &BYTES, 3);
        assert_eq!(first_ect0.wire(), [1, 2, 3, 7, 8, 9, 4, 5, 6]);
        let first_ect1 = AccEcnOption::new(AccEcnOrder::Ect1First, &BYTES, 2);
        assert_eq!(first_ect1.wire(), [4, 5, 6, 7, 8, 9]);
        assert_eq!((first_ect0.len(), first_ect1.len()), (11, 8));
        assert_eq!(first_ect1.to_string(), "ECN e1b 263430 ceb 460809");
    }

    #[test]
    fn a_counter_that_is_left_out_is_not_known() {
        let option = AccEcnOption::new(AccEcnOrder::Ect1First, &BYTES, 2);
        assert_eq!(option.get(Ecn::Ect1), Some(BYTES.ect1));
        assert_eq!(option.get(Ecn::Ce), Some(BYTES.ce));
        assert_eq!((option.get(Ecn::Ect0), option.get(Ecn::NotEct)), (None, None));
    }

    // RFC 9768 §3.2.3: the length need not be that of whole fields.
    #[test]
    fn bytes_that_make_no_field_are_ignored() {
        let option = AccEcnOption::from_wire(AccEcnOrder::Ect0First, &[0, 0, 5, 0, 7]);
        assert_eq!((option.get(Ecn::Ect0), option.get(Ecn::Ce)), (Some(5), None));
        assert!(AccEcnOption::from_wire(AccEcnOrder::Ect0First, &[1]).is_empty());
        let long = AccEcnOption::from_wire(AccEcnOrder::Ect0First, &[1; 12]);
        assert_eq!(long.wire(), [1; 9]);
    }

    #[test]
    fn counters_wrap_at_24_bits() {
        let mut bytes = EcnBytes::INITIAL;
        bytes.add(Ecn::Ce, 0x00ff_ffff);
        bytes.add(Ecn::Ce, 3);
        bytes.add(Ecn::NotEct, 9);
        assert_eq!(bytes, EcnBytes { ce: 2, ..EcnBytes::INITIAL });
    }

    // RFC 9768 §3.2.3.2.4
    #[test]
    fn a_zeroed_field_is_found_out() {
        assert!(!AccEcnOption::new(AccEcnOrder::Ect1First, &EcnBytes::INITIAL, 3).is_zeroed());
        assert!(AccEcnOption::from_wire(AccEcnOrder::Ect1First, &[0; 9]).is_zeroed());
        assert!(!AccEcnOption::from_wire(AccEcnOrder::Ect1First, &[]).is_zeroed());
    }
}
