//! Facts about a product, which a page has for search engines, and often shows by scripts only.

use dom_query::Document;
use serde_json::Value;

/// Maximum length of a script with facts in bytes.
const MAX_SCRIPT: usize = 256 * 1024;

/// Maximum number of scripts with facts that are read.
const MAX_SCRIPTS: usize = 20;

/// Maximum length of a fact in characters.
const MAX_FACT: usize = 100;

/// Price of a product, as in schema.org's `Product`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProductFacts {
    price: String,
    currency: String,
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
    let offers = match &product["offers"] {
        Value::Array(offers) => offers.first()?,
        offer => offer,
    };
    let price = ["price", "lowPrice"].iter().find_map(|member| fact(&offers[*member]))?;
    let currency = fact(&offers["priceCurrency"]).unwrap_or_default();
    Some(ProductFacts { price, currency })
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
        let amount = self.price.strip_suffix(".00").unwrap_or(&self.price);
        match text.contains(amount) || text.contains(&amount.replace('.', ",")) {
            true => text.to_owned(),
            false => format!("Price: {} {}\n\n{text}", self.price, self.currency).replacen(" \n", "\n", 1),
        }
    }
}
