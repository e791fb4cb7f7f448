//! The corpus of the fuzz target `control`, replayed.

#[path = "../../../fuzz/checks/control.rs"]
mod control;
#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;

#[test]
fn the_parser_keeps_its_promises_on_the_corpus() {
    corpus::replay("control", control::check);
}

#[test]
fn a_line_at_the_limit_keeps_them_too() {
    let rest = r#"{"signal":{"group":"","signal":"up"}}"#.len();
    let name = "g".repeat(airtcp_gateway::control::LINE_LIMIT - rest);
    let line = format!(r#"{{"signal":{{"group":"{name}","signal":"up"}}}}"#);
    control::check(line.as_bytes());
}
