//! Host of a compose stack as it was found, in one round trip, before anything is started or removed there.

use std::fmt;
use std::net::IpAddr;

use crate::domain::facts::Runtime;

/// A host that a compose stack may be made on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeHost {
    /// The compose tool that is used, and its engine.
    pub runtime: Runtime,
    /// Addresses that lead somewhere there already; none where nobody asked, because no network wants a certain one.
    pub taken: Option<Vec<TakenSubnet>>,
}

/// Addresses that lead somewhere on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenSubnet {
    pub subnet: Subnet,
    /// Where they lead, as the end of a sentence: `the host has a route to 10.0.0.0/8 (tun0)`.
    pub why: String,
}

/// A range of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

impl Subnet {
    /// Of an address with a prefix length; bits behind the prefix are cleared.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) if prefix <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) if prefix <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
            _ => return None,
        };
        Some(Self { address, prefix })
    }

    /// `ADDRESS/PREFIX`, or one address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => {
                let digits = !prefix.is_empty()
                    && prefix.len() <= 3
                    && prefix.bytes().all(|b| b.is_ascii_digit());
                (address, Some(prefix.parse::<u8>().ok().filter(|_| digits)?))
            }
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        Self::new(address, prefix.unwrap_or(if address.is_ipv4() { 32 } else { 128 }))
    }

    /// First address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Prefix length.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// First address as a number, where it is one of IPv4; else 0.
    pub(crate) fn first_v4(&self) -> u64 {
        match self.address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            IpAddr::V6(_) => 0,
        }
    }

    pub(crate) const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.prefix).is_some_and(|around| around == *self)
    }

    /// Whether all of another one is in it.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_read_as_every_engine_reads_it() {
        for (text, want) in [
            ("10.5.0.0/16", Some("10.5.0.0/16")),
            ("10.5.0.7/16", Some("10.5.0.0/16")),
            ("10.5.0.7", Some("10.5.0.7/32")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("fd12::1/64", Some("fd12::/64")),
            ("fd12::1", Some("fd12::1/128")),
            ("10.5.0.0/33", None),
            ("10.5.0.0/+8", None),
            ("10.5.0.0/", None),
            ("010.5.0.0/16", None),
            ("10.5/16", None),
            ("fd12::/129", None),
            ("10.5.0.0/16,x", None),
            ("fd12::1%eth0/64", None),
            ("", None),
        ] {
            assert_eq!(
                Subnet::parse(text).map(|subnet| subnet.to_string()).as_deref(),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn subnets_overlap_where_one_covers_the_other() {
        let of = |text: &str| Subnet::parse(text).unwrap();
        for (a, b, overlap) in [
            ("10.0.0.0/8", "10.5.0.0/16", true),
            ("10.5.0.0/16", "10.0.0.0/8", true),
            ("10.5.0.0/16", "10.6.0.0/16", false),
            ("10.5.0.0/16", "10.5.9.9", true),
            ("fd12::/48", "fd12:0:0:1::/64", true),
            ("fd12::/48", "10.0.0.0/8", false),
        ] {
            assert_eq!(of(a).overlaps(&of(b)), overlap, "{a} {b}");
        }
    }
}
