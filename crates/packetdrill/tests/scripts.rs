//! Our own scripts pass, and no text makes the parser panic.

use airtcp_packetdrill::{Verdict, parse, run};
use proptest::prelude::*;
use std::path::Path;

#[test]
fn our_scripts_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let script =
            parse(&path.display().to_string(), &text).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(run(&script, &|_| None), Verdict::Passes, "{}", path.display());
        count += 1;
    }
    assert!(count > 0);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(0 |\\+\\.1 )?[<>`%{}\\[\\](),:~.=|\"a-zA-Z0-9 \n-]{0,80}") {
        if let Err(error) = parse("p.pkt", &text) {
            prop_assert!(!error.render().is_empty());
        }
    }
}
