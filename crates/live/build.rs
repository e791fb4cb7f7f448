//! Compiles the BPF programs in `bpf/`, which become a part of the library.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const SOURCE: &str = "bpf/packet_control.bpf.c";
const HEADER: &str = "bpf/kernel.h";

fn main() -> ExitCode {
    for file in [SOURCE, HEADER] {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = PathBuf::from(folder).join("packet_control.bpf.o");
    // Atomic operations that return a value need the third version of the instruction set (Linux 5.12).
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(["-c", SOURCE, "-o"])
        .arg(object)
        .status();
    let why = match status {
        Ok(status) if status.success() => return ExitCode::SUCCESS,
        Ok(status) => format!(
            "{clang} ended with {status} (a clang of version 14 or newer with its BPF target is needed)"
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!(
            "{clang} not found: it compiles the gateway's BPF programs; install clang (scripts/setup does, as root), or \
             name it by CLANG=…"
        ),
        Err(error) => format!("{clang}: {error}"),
    };
    println!("cargo::error={why}");
    ExitCode::FAILURE
}
