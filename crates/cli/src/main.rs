//! The `airtcp` binary; all of it is in the library.

fn main() -> std::process::ExitCode {
    let code = airtcp_cli::main(std::env::args_os());
    std::process::ExitCode::from(u8::try_from(code).unwrap_or(1))
}
