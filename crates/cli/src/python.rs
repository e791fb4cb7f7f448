//! `airtcp study`, `sweep` and `plot` are written in Python: finds an interpreter that has the
//! package and hands over.

use crate::{BAD_INPUT, FAILURE, complain};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs `python -m airtcp SUBCOMMAND ARGS…` in place of this process.
pub(crate) fn hand_over(subcommand: &str, args: &[OsString]) -> i32 {
    let python = match with_package(subcommand) {
        Ok(python) => python,
        Err(message) => {
            complain(&message);
            return BAD_INPUT;
        }
    };
    let mut command = Command::new(&python);
    command.args(["-m", "airtcp", subcommand]).args(args);
    let error = match replace_process(&mut command) {
        Ok(code) => return code,
        Err(error) => error,
    };
    complain(&format!("cannot run {}: {error}", python.display()));
    FAILURE
}

/// Checks a study: its file, or its folder.
pub(crate) fn check_study(file: &Path) -> Result<(), String> {
    let python = with_package("study").map_err(|message| format!("airtcp: {message}"))?;
    let mut command = Command::new(&python);
    command.args(["-m", "airtcp", "study", "check"]).arg(file).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
        Err(error) => Err(format!("airtcp: cannot run {}: {error}", python.display())),
    }
}

/// An interpreter that has the package, or what to do about it.
fn with_package(subcommand: &str) -> Result<PathBuf, String> {
    let python = interpreter();
    let importable = Command::new(&python)
        .args(["-c", "import importlib.util as u, sys; sys.exit(u.find_spec('airtcp') is None)"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let shown = python.display();
    match importable {
        Ok(status) if status.success() => Ok(python),
        Ok(_) => Err(format!(
            "`airtcp {subcommand}` needs the Python package, which {shown} does not have: install its \
             wheel, or in a checkout run `make build`, or set AIRTCP_PYTHON to an interpreter that has it"
        )),
        Err(error) => {
            Err(format!("`airtcp {subcommand}` needs Python, but {shown} cannot be run: {error}"))
        }
    }
}

/// Becomes `command`, so that signals reach it as if it had been called directly.
#[cfg(unix)]
fn replace_process(command: &mut Command) -> io::Result<i32> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn replace_process(command: &mut Command) -> io::Result<i32> {
    command.status().map(|status| status.code().unwrap_or(FAILURE))
}

/// `$AIRTCP_PYTHON`; else the project's `.venv`, sought above the executable and above the working
/// folder; else `python3`.
fn interpreter() -> PathBuf {
    if let Some(python) = std::env::var_os("AIRTCP_PYTHON").filter(|p| !p.is_empty()) {
        return python.into();
    }
    let executable = std::env::current_exe().ok();
    let working = std::env::current_dir().ok();
    let starts = [executable.as_deref().and_then(Path::parent), working.as_deref()];
    let venv = starts.into_iter().flatten().flat_map(Path::ancestors).find_map(|folder| {
        let beside = folder.join("python");
        // The executable may itself be installed in the environment.
        let installed = folder.file_name() == Some(OsStr::new("bin"))
            && folder.join("../pyvenv.cfg").is_file()
            && beside.is_file();
        let python = folder.join(".venv/bin/python");
        if installed { Some(beside) } else { python.is_file().then_some(python) }
    });
    venv.unwrap_or_else(|| "python3".into())
}
