use super::super::path::{Path, SMSS};
use super::*;
#[test]
fn curve() {
    let mut path = Path::new(Bbr3::default(), 20, 40, 2.0);
    path.run(11.0);
    insta::assert_snapshot!(path.curve(0.2));
}
