//! The rules of the `robots.txt` of a site (RFC 9309).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::{Duration, Instant};

use crate::web_url::WebUrl;

/// Number of bytes that are read (RFC 9309, section 2.5: at least 500 KiB).
pub(super) const MAX_BYTES: usize = 500 * 1024;

/// Number of redirects that are followed (RFC 9309, section 2.3.1.2).
pub(super) const MAX_REDIRECTS: usize = 5;

/// Maximum number of rules of one site that are kept.
const MAX_RULES: usize = 5_000;

/// Maximum number of sites whose rules are kept, and of the bytes of all their rules.
const MAX_SITES: usize = 500;
const MAX_CACHED_BYTES: usize = 16 << 20;

/// Time for which the rules of a site are kept (RFC 9309, section 2.4: at most a day).
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The rules of a site. The default permits everything.
#[derive(Debug, Default)]
pub(super) struct RobotsRules {
    groups: Vec<RobotsGroup>,
}

/// Rules for some agents.
#[derive(Debug, Default)]
struct RobotsGroup {
    /// Product names in lower case, or `*`.
    agents: Vec<String>,
    rules: Vec<RobotsRule>,
}

#[derive(Debug)]
struct RobotsRule {
    permits: bool,
    /// Pattern of paths: `*` stands for any characters, and a final `$` for the end.
    pattern: String,
}

impl RobotsRules {
    /// Parses a file. Invalid lines are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let mut groups: Vec<RobotsGroup> = Vec::new();
        let (mut count, mut reads_agents) = (0, false);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split_once('#').map_or(line, |(line, _)| line);
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let permits = match name.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if !reads_agents && count < MAX_RULES {
                        groups.push(RobotsGroup::default());
                    }
                    reads_agents = true;
                    if let Some(group) = groups.last_mut().filter(|_| count < MAX_RULES) {
                        group.agents.push(value.to_ascii_lowercase());
                        count += 1;
                    }
                    continue;
                }
                "allow" => true,
                "disallow" => false,
                _ => continue,
            };
            reads_agents = false;
            if let Some(group) = groups.last_mut().filter(|_| !value.is_empty() && count < MAX_RULES) {
                group.rules.push(RobotsRule { permits, pattern: normalized(value) });
                count += 1;
            }
        }
        Self { groups }
    }

    /// Returns the approximate size in memory, in bytes.
    fn bytes(&self) -> usize {
        let of_group = |group: &RobotsGroup| {
            let agents: usize = group.agents.iter().map(|agent| agent.len() + size_of::<String>()).sum();
            let rules = group.rules.iter().map(|rule| rule.pattern.len() + size_of::<RobotsRule>());
            size_of::<RobotsGroup>() + agents + rules.sum::<usize>()
        };
        self.groups.iter().map(of_group).sum()
    }

    /// Returns `true` if an agent may visit a URL: of the groups for its product, or else of those for all, the longest
    /// matching rule decides, and of equally long ones that which permits.
    pub(super) fn permits(&self, agent: &str, url: &WebUrl) -> bool {
        let product = agent.split(['/', ' ']).next().unwrap_or_default().to_ascii_lowercase();
        let has = |group: &&RobotsGroup, name: &str| group.agents.iter().any(|agent| agent == name);
        let is_named = self.groups.iter().any(|group| has(&group, &product));
        let name = if is_named { &*product } else { "*" };
        let path = normalized(url.uri().path_and_query().map_or("/", |path| path.as_str()));
        let rules = self.groups.iter().filter(|group| has(group, name)).flat_map(|group| &group.rules);
        let matching = rules.filter(|rule| matches(&rule.pattern, &path));
        matching.max_by_key(|rule| (rule.pattern.len(), rule.permits)).is_none_or(|rule| rule.permits)
    }
}

/// Returns a path with its percent-encoding in one form: of letters, digits and other unreserved characters none, of
/// characters beyond ASCII always.
fn normalized(path: &str) -> String {
    let mut bytes = path.bytes();
    let mut text = String::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        let mut rest = bytes.clone();
        let encoded = (byte == b'%').then(|| hex(rest.next()?).zip(hex(rest.next()?))).flatten();
        match encoded.map(|(high, low)| high << 4 | low) {
            Some(byte) => {
                bytes = rest;
                match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    true => text.push(char::from(byte)),
                    false => text.push_str(&format!("%{byte:02X}")),
                }
            }
            None if byte.is_ascii() => text.push(char::from(byte)),
            None => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Matches a pattern against the beginning of a path. Each part between stars is found as early as possible, so that the
/// time is bounded by the product of the lengths.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, is_anchored) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !is_anchored || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if is_anchored && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The rules of the sites that were visited last.
#[derive(Debug, Default)]
pub(super) struct RobotsCache {
    sites: Mutex<CachedSites>,
}

#[derive(Debug, Default)]
struct CachedSites {
    by_origin: HashMap<String, CachedRules>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedRules {
    read: Instant,
    rules: Arc<RobotsRules>,
    bytes: usize,
}

impl CachedSites {
    fn remove(&mut self, origin: &str) {
        if let Some(removed) = self.by_origin.remove(origin) {
            self.bytes -= removed.bytes;
        }
    }

    /// Removes the rules that were read first until there is room for more.
    fn make_room(&mut self, bytes: usize) {
        while self.by_origin.len() >= MAX_SITES || self.bytes + bytes > MAX_CACHED_BYTES {
            let oldest = self.by_origin.iter().min_by_key(|(_, cached)| cached.read);
            let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) else { return };
            self.remove(&oldest);
        }
    }
}

impl RobotsCache {
    pub(super) fn get(&self, origin: &str) -> Option<Arc<RobotsRules>> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = sites.by_origin.get(origin).filter(|cached| cached.read.elapsed() < LIFETIME);
        cached.map(|cached| cached.rules.clone())
    }

    pub(super) fn put(&self, origin: String, rules: Arc<RobotsRules>) {
        let bytes = origin.len() + rules.bytes();
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.remove(&origin);
        sites.make_room(bytes);
        sites.bytes += bytes;
        sites.by_origin.insert(origin, CachedRules { read: Instant::now(), rules, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, path: &str, expected: bool) {
        let url = WebUrl::parse(&format!("https://example.com{path}")).expect("a URL");
        assert_eq!(
            RobotsRules::parse(file).permits("Toolyard/0.1.0 (test)", &url),
            expected,
            "{file:?} {path}"
        );
    }

    #[test]
    fn groups_apply_to_their_agents() {
        check("", "/x", true);
        check("User-agent: *\nDisallow: /", "/x", false);
        check("user-agent : *\ndisallow : /x # all of it", "/x/y", false);
        check("User-agent: *\nDisallow:", "/x", true);
        check("User-agent: other\nDisallow: /", "/x", true);
        check("User-agent: *\nDisallow: /\n\nUser-agent: TOOLYARD\nAllow: /", "/x", true);
        check("User-agent: a\nUser-agent: toolyard\nDisallow: /x", "/x", false);
        check("User-agent: toolyard\nDisallow: /x\nUser-agent: toolyard\nDisallow: /y", "/y", false);
        check("User-agent: toolyard-news\nDisallow: /", "/x", true);
        check("Disallow: /", "/x", true);
        check("\u{feff}User-agent: *\nCrawl-delay: 3\nDisallow: /", "/", false);
    }

    #[test]
    fn longest_rule_decides() {
        let all = |rules: &str| format!("User-agent: *\n{rules}");
        check(&all("Allow: /p\nDisallow: /"), "/page", true);
        check(&all("Allow: /folder\nDisallow: /folder"), "/folder/page", true);
        check(&all("Disallow: /*.php$"), "/a.php", false);
        check(&all("Disallow: /*.php$"), "/a.php?x=1", true);
        check(&all("Disallow: /*?"), "/a?x", false);
        check(&all("Disallow: /a*b*c"), "/axxbxxcx", false);
        check(&all("Disallow: /a*b*c"), "/axxcxxb", true);
        check(&all("Disallow: /fish"), "/Fish", true);
        check(&all("Disallow: /caf%C3%A9"), "/café", false);
        check(&all("Disallow: /café"), "/caf%c3%a9/x", false);
        check(&all("Disallow: /%7Ejoe"), "/~joe", false);
        check(&all("Disallow: *"), "/x", false);
        check(&all("Disallow: $"), "/x", true);
    }

    #[test]
    fn sites_and_rules_are_bounded() {
        let rules = RobotsRules::parse(&format!("User-agent: *\n{}", "Disallow: /x\n".repeat(6000)));
        assert_eq!(rules.groups[0].rules.len(), MAX_RULES - 1);
        let cache = RobotsCache::default();
        for site in 0..=MAX_SITES {
            cache.put(site.to_string(), Arc::default());
        }
        assert_eq!(cache.sites.lock().unwrap().by_origin.len(), MAX_SITES);
        assert!(cache.get(&MAX_SITES.to_string()).is_some());
        let large =
            Arc::new(RobotsRules::parse(&format!("User-agent: *\nDisallow: /{}", "x".repeat(MAX_BYTES))));
        for site in 0..50 {
            cache.put(site.to_string(), large.clone());
        }
        let sites = cache.sites.lock().unwrap();
        let bytes: usize = sites.by_origin.values().map(|cached| cached.bytes).sum();
        assert_eq!(sites.bytes, bytes);
        assert!(bytes <= MAX_CACHED_BYTES && (10..50).contains(&sites.by_origin.len()), "{bytes} bytes");
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_parsed_without_panic(file in "(?s).{0,200}", path in "/[ -~]{0,40}") {
            if let Ok(url) = WebUrl::parse(&format!("https://example.com{path}")) {
                let _ = RobotsRules::parse(&file).permits("x", &url);
            }
        }
    }
}
