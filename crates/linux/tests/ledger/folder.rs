//! Folders that are accepted for a ledger.

use airtcp_core::Bytes;
use airtcp_linux::daemon::ledger::{Ledger, OpenError, check_folder};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::tempdir;

fn open(dir: &Path) -> Result<Ledger, OpenError> {
    Ledger::open(dir, Bytes(1 << 20))
}

#[test]
fn it_is_made_for_this_user_only() {
    let parent = tempdir().unwrap();
    let dir = parent.path().join("run/airtcp");
    open(&dir).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join("lock"))), (0o700, 0o600));
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
    assert!(error.to_string().contains("chmod 700"), "{error}");
}

#[test]
fn a_link_or_a_file_in_its_place_is_refused() {
    let parent = tempdir().unwrap();
    let (target, link, file) =
        (parent.path().join("target"), parent.path().join("link"), parent.path().join("file"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &link).unwrap();
    fs::write(&file, "").unwrap();
    assert!(matches!(open(&link), Err(OpenError::NotOurs { .. })));
    assert!(matches!(open(&file), Err(OpenError::NotOurs { .. })));
    assert_eq!(target.read_dir().unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_check_finds_what_would_be_refused_and_makes_nothing() {
    let parent = tempdir().unwrap();
    let (dir, file) = (parent.path().join("run/airtcp"), parent.path().join("file"));
    check_folder(&dir).unwrap();
    assert!(!parent.path().join("run").exists());
    fs::write(&file, "").unwrap();
    assert!(matches!(check_folder(&file), Err(OpenError::NotOurs { .. })));
    assert!(matches!(check_folder(&file.join("airtcp")), Err(OpenError::Io { .. })));
    assert!(open(&file.join("airtcp")).is_err());
    fs::create_dir_all(&dir).unwrap();
    check_folder(&dir).unwrap();
    fs::set_permissions(&dir, Permissions::from_mode(0o720)).unwrap();
    assert!(matches!(check_folder(&dir), Err(OpenError::NotOurs { .. })));
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&dir, Some(1), None).unwrap();
        let error = check_folder(&dir).unwrap_err();
        assert!(error.to_string().contains("a folder of user 0 "), "{error}");
    }
}

#[test]
fn two_gateways_do_not_share_one() {
    let dir = tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    assert!(matches!(open(dir.path()), Err(OpenError::InUse(_))));
    drop(first);
    open(dir.path()).unwrap();
}
