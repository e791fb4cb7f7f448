//! Lists in messages.

/// Most items of a list that are named.
const NAMED: usize = 10;

/// The items as text: the first ten, and the number of others.
pub fn listed(items: &[impl AsRef<str>]) -> String {
    let mut text: Vec<&str> = items.iter().take(NAMED).map(AsRef::as_ref).collect();
    let others = items.len().saturating_sub(NAMED);
    let others = (others > 0).then(|| format!("and {others} more"));
    text.extend(others.as_deref());
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_list_the_first_ten_are_named() {
        let names: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert_eq!(listed(&names[..0]), "");
        assert_eq!(listed(&names[..2]), "0, 1");
        assert_eq!(listed(&names[..10]), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
        assert_eq!(listed(&names), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
