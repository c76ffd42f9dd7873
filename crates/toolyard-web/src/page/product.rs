//! Facts about a product, which a page has for search engines, and often shows by scripts only.

use std::collections::HashSet;

use dom_query::Document;
use serde_json::Value;

use super::tree;

/// Maximum length of a script with facts in bytes.
const MAX_SCRIPT: usize = 256 * 1024;

/// Maximum number of scripts with facts that are read.
const MAX_SCRIPTS: usize = 20;

/// Maximum length of a fact in characters.
const MAX_FACT: usize = 100;

/// Maximum length of a description in bytes.
const MAX_DESCRIPTION: usize = 10_000;

/// Part of the words of a description that a text has at least if it has the description, in percent.
const DESCRIBED_SHARE: usize = 60;

/// A product, as in schema.org's `Product`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProductFacts {
    price: Option<String>,
    currency: String,
    description: String,
}

/// Returns the facts about the one product of a page.
pub(super) fn facts(document: &Document) -> Option<ProductFacts> {
    let scripts = document.select("script[type='application/ld+json']");
    let mut products = Vec::new();
    for script in scripts.nodes().iter().take(MAX_SCRIPTS) {
        let text = script.text();
        if text.len() <= MAX_SCRIPT
            && let Ok(value) = serde_json::from_str::<Value>(&text)
        {
            products.extend(top_level(&value).into_iter().filter(|item| is_product(item)).cloned());
        }
    }
    let [product] = &*products else { return None };
    let offer = first(&product["offers"]);
    let specification = first(&offer["priceSpecification"]);
    let price = [&offer["price"], &offer["lowPrice"], &specification["price"]].into_iter().find_map(fact);
    let currency = fact(&offer["priceCurrency"]).or_else(|| fact(&specification["priceCurrency"]));
    let description = product["description"].as_str().filter(|text| text.len() <= MAX_DESCRIPTION);
    Some(ProductFacts {
        price,
        currency: currency.unwrap_or_default(),
        description: description.map(markdown).unwrap_or_default(),
    })
}

fn first(value: &Value) -> &Value {
    value.as_array().and_then(|values| values.first()).unwrap_or(value)
}

/// Returns a description, which is HTML or a text, as Markdown. Some descriptions escape their markup.
fn markdown(description: &str) -> String {
    let parsed = |html: &str| {
        let document = Document::fragment(html);
        tree::flatten(&document);
        document
    };
    let mut document = parsed(description);
    if document.text().contains("</") {
        document = parsed(&document.text());
    }
    document.md(None).trim().to_owned()
}

/// Returns the items of a script.
fn top_level(value: &Value) -> Vec<&Value> {
    let items: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        item => vec![item],
    };
    let graph = |item: &'_ Value| item["@graph"].as_array().is_some();
    items
        .into_iter()
        .flat_map(|item| match graph(item) {
            true => item["@graph"].as_array().into_iter().flatten().collect(),
            false => vec![item],
        })
        .collect()
}

fn is_product(item: &Value) -> bool {
    let is_name =
        |name: &Value| name.as_str().is_some_and(|name| name == "Product" || name == "ProductGroup");
    match &item["@type"] {
        Value::Array(names) => names.iter().any(is_name),
        name => is_name(name),
    }
}

fn fact(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty() && text.chars().count() <= MAX_FACT && !text.contains(char::is_control)).then_some(text)
}

impl ProductFacts {
    /// Returns a text with the facts that it lacks above it.
    pub(super) fn above(&self, text: &str) -> String {
        let price = self.price.as_ref().filter(|price| {
            let amount = price.strip_suffix(".00").unwrap_or(price);
            !text.contains(amount) && !text.contains(&amount.replace('.', ","))
        });
        let price = price.map(|price| format!("Price: {price} {}", self.currency).trim_end().to_owned());
        let description = (!self.is_described_in(text)).then(|| self.description.clone());
        price.into_iter().chain(description).chain([text.to_owned()]).collect::<Vec<_>>().join("\n\n")
    }

    fn is_described_in(&self, text: &str) -> bool {
        let words = |text: &str| -> HashSet<String> {
            text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect()
        };
        let (description, text) = (words(&self.description), words(text));
        description.intersection(&text).count() * 100 >= description.len() * DESCRIBED_SHARE
    }
}
