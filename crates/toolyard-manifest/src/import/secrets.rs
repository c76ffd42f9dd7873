//! Secrets in the files of clients, which a manifest refers to instead of containing them.

use std::{collections::BTreeMap, fmt};

use super::{
    reference,
    rewrite::{is_literal, may_be_secret},
    unresolved::{handlers_mut, member_mut, name_of},
};
use crate::{
    handler::SecretString,
    tree::{NodeContent, TreeNode},
};

/// Starts of tokens whose form shows that they are secret.
const TOKEN_PREFIXES: &[&str] = &[
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "hf_",
    "npm_",
    "lin_api_",
];

/// A secret that a manifest refers to.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtractedSecret {
    /// Name of the secret: a valid name of an environment variable and of a file.
    pub name: String,
    /// The secret.
    pub value: SecretString,
}

impl fmt::Debug for ExtractedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtractedSecret({})", self.name)
    }
}

/// The secrets of several documents, by their names.
#[derive(Default)]
pub(super) struct SecretExtractor {
    secrets: BTreeMap<String, String>,
}

impl SecretExtractor {
    /// Replaces the secrets in the handlers of an imported document by references to them: values of variables and
    /// headers, options of programs, and URLs with secrets in their query.
    pub(super) fn extract(&mut self, document: &mut TreeNode, reference: &dyn Fn(&str) -> String) {
        for handler in handlers_mut(document).into_iter().flatten() {
            let server = name_of(handler).unwrap_or_default();
            let Some(config) = member_mut(handler, "mcpConfig") else { continue };
            if let Some(NodeContent::Object(members)) = member_mut(config, "env").map(|env| &mut env.content)
            {
                for member in members {
                    if let NodeContent::Text(text) = &mut member.value.content
                        && is_secret(&member.name, text)
                    {
                        self.replace(text, &server, &member.name, true, reference);
                    }
                }
            }
            if let Some(NodeContent::Object(members)) =
                member_mut(config, "headers").map(|headers| &mut headers.content)
            {
                for member in members {
                    if let NodeContent::Text(text) = &mut member.value.content
                        && is_secret(&member.name, text)
                    {
                        self.replace(text, &server, &member.name, false, reference);
                    }
                }
            }
            if let Some(NodeContent::List(args)) = member_mut(config, "args").map(|args| &mut args.content) {
                self.extract_args(args, &server, reference);
            }
            if let Some(NodeContent::Text(url)) = member_mut(config, "endpoint").map(|url| &mut url.content)
                && has_secret_query(url)
            {
                self.replace(url, &server, "url", false, reference);
            }
        }
    }

    /// Replaces the secrets in the arguments of a program: `--token X`, `--token=X`, `--header 'Authorization: X'`, and
    /// tokens and URLs with passwords anywhere.
    fn extract_args(&mut self, args: &mut [TreeNode], server: &str, reference: &dyn Fn(&str) -> String) {
        let mut option = String::new();
        for arg in args {
            let NodeContent::Text(text) = &mut arg.content else { continue };
            let own = text.strip_prefix('-').map(|text| text.trim_start_matches('-').to_owned());
            match own.as_deref().map(|own| own.split_once('=')) {
                Some(Some((name, value))) if is_secret(name, value) => {
                    let mut secret = value.to_owned();
                    self.replace(&mut secret, server, name, false, reference);
                    let start = text.len() - value.len();
                    text.replace_range(start.., &secret);
                }
                Some(_) => {}
                None => {
                    let name = match text.split_once(':') {
                        Some((header, _)) if matches!(option.as_str(), "header" | "H") => header.to_owned(),
                        _ => option.clone(),
                    };
                    if is_secret(&name, text) {
                        let name = if name.is_empty() { "token" } else { &name };
                        self.replace(text, server, name, false, reference);
                    }
                }
            }
            option = own.filter(|own| !own.contains('=')).unwrap_or_default();
        }
    }

    /// Replaces a text by a reference to it. The name is that of the variable if it is free, or else begins with the
    /// name of the server.
    fn replace(
        &mut self,
        text: &mut String,
        server: &str,
        name: &str,
        prefers_plain: bool,
        reference: &dyn Fn(&str) -> String,
    ) {
        let value = std::mem::take(text);
        let plain = reference::variable_name(name);
        let full = reference::variable_name(&format!("{server}-{name}"));
        let numbered = (2..).map(|number| format!("{full}_{number}"));
        let candidates = prefers_plain.then_some(plain).into_iter().chain([full.clone()]).chain(numbered);
        for candidate in candidates {
            let owner = self.secrets.get(&candidate);
            if owner.is_none_or(|owner| *owner == value) {
                *text = reference(&candidate);
                self.secrets.insert(candidate, value);
                return;
            }
        }
    }

    /// The secrets, in the order of their names.
    pub(super) fn finish(self) -> Vec<ExtractedSecret> {
        let secret = |(name, value)| ExtractedSecret { name, value: SecretString::new(value) };
        self.secrets.into_iter().map(secret).collect()
    }
}

/// True if a literal value is likely to be secret, by its name or by its form.
fn is_secret(name: &str, value: &str) -> bool {
    is_literal(value) && (may_be_secret(name) || looks_secret(value))
}

fn looks_secret(value: &str) -> bool {
    let token = value.rsplit(' ').next().unwrap_or_default();
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    });
    has_password || has_secret_query(value) || TOKEN_PREFIXES.iter().any(|prefix| token.starts_with(prefix))
}

/// True if a URL has a secret in its query.
fn has_secret_query(url: &str) -> bool {
    let Some((_, query)) = url.split_once('?').filter(|(before, _)| before.contains("://")) else {
        return false;
    };
    let is_secret = |pair: &str| {
        pair.split_once('=').is_some_and(|(name, value)| is_literal(value) && may_be_secret(name))
    };
    is_literal(url) && query.split('&').any(is_secret)
}
