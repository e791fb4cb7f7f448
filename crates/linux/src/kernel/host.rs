//! Interfaces and addresses of this host, and programs of other packages.

use airtcp_gateway::config::OwnAddress;
use airtcp_gateway::dispatch::Interfaces;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{Interface, InterfaceFlags};
use nix::sys::socket::SockaddrStorage;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::{env, fs};

/// All interfaces whose names a configuration can have; none if they cannot be read.
pub fn interfaces() -> Interfaces {
    let Ok(all) = nix::net::if_::if_nameindex() else { return Interfaces::new() };
    let named = |interface: &Interface| {
        Some((interface.name().to_str().ok()?.parse().ok()?, interface.index()))
    };
    all.iter().filter_map(named).collect()
}

/// Addresses of this host but those of loopback and of single links (fe80::/10); none if they cannot
/// be read.
pub fn addresses() -> Vec<OwnAddress> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let default = default_interfaces();
    let own = |found: InterfaceAddress| {
        let ip = ip_of(&found.address?)?;
        let is_of_link = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let is_loopback = found.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let has_default_route = default.contains(&found.interface_name);
        (!is_of_link && !is_loopback).then_some(OwnAddress {
            ip,
            interface: found.interface_name,
            has_default_route,
        })
    };
    all.filter_map(own).collect()
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let ipv4 = || address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())).or_else(ipv4)
}

/// Interfaces over which the default routes of the main table lead.
fn default_interfaces() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let [ipv4, ipv6] = ["/proc/net/route", "/proc/net/ipv6_route"].map(read);
    of_default_routes(&ipv4, &ipv6)
}

/// The same, from the texts of `/proc/net/route` (interface, destination, gateway, flags, three
/// counters, mask) and `/proc/net/ipv6_route` (destination, length of its prefix, …, interface).
fn of_default_routes(ipv4: &str, ipv6: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let of_ipv4 = ipv4.lines().map(words).filter_map(|words| match &words[..] {
        [interface, destination, _, _, _, _, _, mask, ..]
            if [destination, mask].iter().all(|word| word.as_str() == "00000000") =>
        {
            Some(interface.clone())
        }
        _ => None,
    });
    let of_ipv6 = ipv6.lines().map(words).filter_map(|words| match &words[..] {
        // The kernel has a default route over lo that refuses.
        [destination, length, .., interface]
            if length == "00" && destination.trim_matches('0').is_empty() && interface != "lo" =>
        {
            Some(interface.clone())
        }
        _ => None,
    });
    of_ipv4.chain(of_ipv6).collect()
}

/// Index of an interface; `None` if it does not exist.
pub(crate) fn interface(name: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(name).ok()
}

/// Path of a program on PATH or in /usr/sbin or /sbin, which users often lack on their PATH.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    folders.map(|folder| folder.join(name)).find(executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_read_as_the_kernel_writes_them() {
        let ipv4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                    wan0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                    wlan0\t0000140A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
                    tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n";
        let none = "0".repeat(32);
        let line = |destination: &str, length: &str, interface: &str| {
            format!(
                "{destination} {length} {none} 00 {none} 00000400 00000001 00000000 00000003 {interface}\n"
            )
        };
        let ipv6 = [line(&none, "00", "wwan0"), line(&none, "00", "lo"), line(&none, "01", "tun0")];
        assert_eq!(of_default_routes(ipv4, &ipv6.concat()), ["wan0", "wwan0"]);
        assert_eq!(of_default_routes("", "x"), [""; 0]);
    }

    #[test]
    fn addresses_of_this_host_are_not_those_of_loopback() {
        let own = addresses();
        assert!(own.iter().all(|own| !own.ip.is_loopback() && own.interface != "lo"), "{own:?}");
    }
}
