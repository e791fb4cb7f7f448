//! Shell commands of a script: those that configure TCP are read, the others named.
//!
//! Nothing is run. `sysctl`, packetdrill's `set_sysctls.py`, and `echo` into `/proc/sys` and
//! `/sys/module` become settings. Shell scripts that the commands run are read, too.

/// Deepest nesting of shell scripts that run one another.
const DEEPEST: u32 = 4;

/// Effects of shell commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    /// Settings in order: `net.ipv4.tcp_sack` and its value.
    pub(crate) settings: Vec<(String, String)>,
    /// Commands that are not supported here.
    pub(crate) needs: Vec<String>,
}

/// Reads commands; `files` gives the text of a shell script that they run.
pub(crate) fn read(text: &str, files: &dyn Fn(&str) -> Option<String>) -> Commands {
    let mut commands = Commands::default();
    read_into(&mut commands, text, files, 0);
    commands
}

fn read_into(
    commands: &mut Commands,
    text: &str,
    files: &dyn Fn(&str) -> Option<String>,
    depth: u32,
) {
    for words in simple_commands(text) {
        let (words, target) = without_redirections(words);
        let Some((program, arguments)) = words.split_first() else { continue };
        let name = program.rsplit('/').next().unwrap_or(program);
        match name {
            "sysctl" | "set_sysctls.py" => {
                for (key, value) in arguments.iter().filter_map(|word| word.split_once('=')) {
                    commands.settings.push((setting_name(key), value_of(value)));
                }
            }
            "echo" if target.is_some() => {
                let target = target.unwrap_or_default();
                commands.settings.push((setting_name(&target), value_of(&arguments.join(" "))));
            }
            // What it undoes is not kept from script to script.
            _ if name.starts_with("sysctl_restore") => {}
            _ if name.ends_with(".sh") => match files(program) {
                Some(text) if depth < DEEPEST => read_into(commands, &text, files, depth + 1),
                _ => commands.needs.push(format!("the commands in {program}")),
            },
            _ => commands.needs.extend(need(name, arguments)),
        }
    }
}

/// The unsupported command, by name; `None` if it does not affect TCP here.
fn need(name: &str, arguments: &[String]) -> Option<String> {
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match name {
        "ip" if has("tcp_metrics") => None,
        // Whether segments leave joined or one by one, their bytes are the same here.
        "ethtool" if has("-K") => None,
        "tc" if has("limit") => Some("a queue that drops every packet (tc … limit)".to_owned()),
        "tc" if has("fq") => Some("the queue discipline fq (tc)".to_owned()),
        "tc" if has("qdisc") => None,
        "true" | "sleep" | "echo" | "[" | "exit" => None,
        _ => Some(format!("the command `{name}`")),
    }
}

/// `/proc/sys/net/ipv4/tcp_sack` and `net/ipv4/tcp_sack` are `net.ipv4.tcp_sack`;
/// `/sys/module/M/parameters/P` is `M.P`.
fn setting_name(key: &str) -> String {
    if let Some(parameter) = key.strip_prefix("/sys/module/") {
        return parameter.replace("/parameters/", ".");
    }
    key.trim_start_matches("/proc/sys/").replace('/', ".")
}

/// The value, with products such as `$((15*1024*1024))` computed.
fn value_of(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$((") {
        out += before;
        let Some((product, after)) = after.split_once("))") else { break };
        let factors: Option<Vec<u64>> = product.split('*').map(|f| f.trim().parse().ok()).collect();
        let value = factors.and_then(|f| f.iter().try_fold(1_u64, |a, b| a.checked_mul(*b)));
        out += &value.map_or_else(|| product.to_owned(), |value| value.to_string());
        rest = after;
    }
    out + rest
}

/// The words of each command, without quotes.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut characters = text.chars().peekable();
    let end_word = |word: &mut String, commands: &mut Vec<Vec<String>>| {
        if let (false, Some(last)) = (word.is_empty(), commands.last_mut()) {
            last.push(std::mem::take(word));
        }
    };
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if word.is_empty() => {
                while characters.peek().is_some_and(|c| *c != '\n') {
                    characters.next();
                }
            }
            (None, '&') if word.ends_with('>') || characters.peek() == Some(&'>') => word.push(c),
            (None, ';' | '\n' | '|' | '&') => {
                end_word(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => end_word(&mut word, &mut commands),
            (None, c) => word.push(c),
        }
    }
    end_word(&mut word, &mut commands);
    commands.retain(|command| !command.is_empty());
    commands
}

/// The words without redirections such as `> FILE`, and the file that receives the output.
fn without_redirections(words: Vec<String>) -> (Vec<String>, Option<String>) {
    let mut kept = Vec::new();
    let mut target = None;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.split_once('>') {
            Some((descriptor, file)) if matches!(descriptor, "" | "1" | "2" | "&") => {
                let file = file.trim_start_matches(['>', '&']).to_owned();
                let file = if file.is_empty() { words.next() } else { Some(file) };
                if descriptor != "2" {
                    target = file;
                }
            }
            _ => kept.push(word),
        }
    }
    (kept, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Vec<(String, String)> {
        let commands = read(text, &|_| None);
        assert_eq!(commands.needs, Vec::<String>::new());
        commands.settings
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn sysctls_in_their_three_notations() {
        for text in [
            "sysctl -q net.ipv4.tcp_sack=0 2>/dev/null",
            "../set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0",
            "echo 0 > /proc/sys/net/ipv4/tcp_sack",
        ] {
            assert_eq!(settings(text), [pair("net.ipv4.tcp_sack", "0")], "{text}");
        }
    }

    #[test]
    fn values_of_several_words_and_products() {
        let text = "sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\" # comment";
        assert_eq!(settings(text), [pair("net.ipv4.tcp_rmem", "4096 540000 15728640")]);
    }

    #[test]
    fn parameters_of_modules() {
        let text = "echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect";
        assert_eq!(settings(text), [pair("tcp_cubic.hystart_detect", "3")]);
    }

    #[test]
    fn a_shell_script_is_read_in_its_turn() {
        let files =
            |name: &str| (name == "../d.sh").then(|| "sysctl a.b=1\ntc qdisc add".to_owned());
        assert_eq!(read("../d.sh", &files).settings, [pair("a.b", "1")]);
        assert_eq!(read("../e.sh", &files).needs, ["the commands in ../e.sh"]);
        let itself = |_: &str| Some("x.sh".to_owned());
        assert_eq!(read("x.sh", &itself).needs, ["the commands in x.sh"]);
    }

    #[test]
    fn what_cannot_be_done_here_is_named() {
        let commands =
            read("tc qdisc replace dev tun0 root pfifo limit 0; nstat > /dev/null", &|_| None);
        assert_eq!(commands.needs.len(), 2);
        assert_eq!(commands.needs[1], "the command `nstat`");
    }
}
