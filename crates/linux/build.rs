//! Compiles the BPF programs in `bpf/`, which become a part of the library.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAMS: [&str; 4] = ["mirror", "mirror_tc", "cwnd", "karak"];
const HEADERS: [&str; 3] = ["bpf/ip.h", "bpf/kernel.h", "bpf/mirror.h"];

fn main() -> ExitCode {
    for file in PROGRAMS.map(source).iter().map(String::as_str).chain(HEADERS) {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    match PROGRAMS.iter().try_for_each(|program| compile(&clang, program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

fn source(program: &str) -> String {
    format!("bpf/{program}.bpf.c")
}

fn compile(clang: &str, program: &str) -> Result<(), String> {
    let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    // The kernel that loads it has the byte order of this target.
    let is_big = env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|order| order == "big");
    let target = if is_big { "bpfeb" } else { "bpfel" };
    let object = PathBuf::from(folder).join(format!("{program}.bpf.o"));
    let status = Command::new(clang)
        .args(["-target", target, "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"])
        // The folder of the build does not become a part of the object.
        .arg("-fdebug-compilation-dir=.")
        .args(["-c", &source(program), "-o"])
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "{clang} ended with {status} (a clang of version 14 or newer with its BPF target is needed)"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
            "{clang} not found: it compiles the BPF programs of `gateway`, `delack` and `cc`; install clang (scripts/setup does, as root), or \
             name it by CLANG=…"
        )),
        Err(error) => Err(format!("{clang}: {error}")),
    }
}
