#!/bin/sh
# The Rust crate prometheus-parse 0.2.5 splits labels at each comma and equals sign, inside of quotes
# too: a value ends at a comma, a label with an equals sign in its value is gone, and so is the whole
# sample if there is a closing brace in it. Escapes are left as they are, a last quote is cut off, and
# a blank before a name becomes part of the name. No error is returned. In the format a value is any
# UTF-8 text in quotes, with \\, \" and \n for three characters; prometheus_client 0.26.0 for Python
# reads all five lines.
#
# Seen: "north, hill" is "north", "vlan=7" no label, "{7}" no sample, say \"hi\" is say \"hi\,
# and of a="1", b="2" the second label is called " b".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat >"$dir/Cargo.toml" <<'END'
[package]
name = "finding"
version = "0.1.0"
edition = "2021"
[dependencies]
prometheus-parse = "=0.2.5"
[workspace]
END
cat >"$dir/src/main.rs" <<'END'
use prometheus_parse::Scrape;

fn read(line: &str) -> Vec<Vec<(String, String)>> {
    let scrape = Scrape::parse([Ok(line.to_owned())].into_iter()).unwrap();
    let labels = |labels: &prometheus_parse::Labels| {
        let mut labels: Vec<_> = labels.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        labels.sort();
        labels
    };
    let found = scrape.samples.iter().map(|sample| labels(&sample.labels)).collect();
    println!("{line} -> {found:?}");
    found
}

fn main() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(read(r#"flows{group="north, hill"} 3"#), [[pair("group", "north")]]);
    assert_eq!(read(r#"flows{group="vlan=7"} 3"#), [[]]);
    assert!(read(r#"flows{group="{7}"} 3"#).is_empty());
    assert_eq!(read(r#"flows{group="say \"hi\""} 3"#), [[pair("group", r#"say \"hi\"#)]]);
    assert_eq!(read(r#"flows{a="1", b="2"} 3"#), [[pair(" b", "2"), pair("a", "1")]]);
}
END
CARGO_TARGET_DIR=$dir/target cargo run --quiet --manifest-path "$dir/Cargo.toml"
